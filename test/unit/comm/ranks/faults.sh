#!/usr/bin/env bash
# usage: faults.sh KIND PROGRAM LAUNCHER...   Of ranks that meet by KIND, mpi or tcp, lets rank 1 of 2 or 3 fail in every way and looks at how the job ends.
set -u
kind=$1 program=$2
shift 2
failed=0

# expect RANKS HOW RANKS-PER-HOST PATTERN: the job fails within 10 s and prints PATTERN.
expect() {
  local output begin=$SECONDS
  output=$(timeout -k 2 20 "${launcher[@]}" -np "$1" "$program" "$2" "$3" 2>&1)
  local status=$?
  if [ $status = 0 ] || [ $((SECONDS - begin)) -gt 10 ] || ! grep -Eq "$4" <<<"$output"; then
    echo "FAILED: $1 ranks, $2, $3 ranks per host: exit $status after $((SECONDS - begin)) s, wanted '$4':"
    echo "$output"
    failed=1
  fi
}

launcher=("$@")
late='error: all-reduce of bucket 1 \(conv1.weight, conv1.bias\) in step 3 did not complete within 2 s: rank 1 '
for ranks in 2 3; do
  # A launcher may itself end the job, and be first to say which rank it was.
  expect $ranks kill 0 'rank 1 .*(has died|exited on signal 9)'
  for perHost in 0 1; do
    expect $ranks stop $perHost "$late.*has not started it"
    expect $ranks throw $perHost 'error: rank 1 cannot read its file'
    expect $ranks behind $perHost 'error: all-reduce 5 did not complete within 2 s: rank 1 .*has not started it'
    expect $ranks silent $perHost 'error: all-reduce 5 did not complete within 2 s: rank 1 .*does not answer'
  done
  if [ $kind = tcp ]; then # nobody ends them: they hear of it
    for perHost in 0 1; do
      expect $ranks throw $perHost 'error: another rank gave up: rank 1 cannot read its file'
    done
    expect $ranks kill 0 'error: rank 1 \(process [0-9]+\) has died; all-reduce of bucket 1'
    expect $ranks kill 1 'error: rank 1 has died: its connection is closed'
  fi
  expect $ranks end 0 'error: rank 1 .*has ended; all-reduce of bucket 1 .* in step 3'
done
if compgen -G '/dev/shm/dlc.*' >/dev/null; then
  echo "FAILED: shared memory left behind:" /dev/shm/dlc.*
  failed=1
fi
exit $failed
