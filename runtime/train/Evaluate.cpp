#include "runtime/train/Evaluate.h"

#include "runtime/train/CollectiveError.h"
#include "runtime/train/Signature.h"

namespace dlc::rt {

void setStepScalars(Session &session, uint64_t seed, int64_t step, int64_t batch, int64_t valid,
                    MicroBatch part) {
  const ControlPlane &control = session.control();
  session.setScalar("step", step);
  session.setScalar("seed", static_cast<int64_t>(seed));
  session.setScalar("inverse_world", 1.0 / static_cast<double>(control.size() * part.count));
  session.setScalar("first_row", (control.rank() * part.count + part.index) * batch);
  session.setScalar("valid_rows", valid);
}

void setEvaluationScalars(Session &session, uint64_t seed, int64_t firstRow, int64_t batch,
                          int64_t valid) {
  setStepScalars(session, seed, 0, batch, valid);
  session.setScalar("first_row", firstRow);
}

Totals evaluate(Session &session, const std::string &programName, const Dataset &dataset,
                const std::vector<int64_t> &samples, uint64_t seed) {
  ControlPlane &control = session.control();
  const artifact::Program &program = requireProgram(session.artifact(), programName);
  Totals totals(program);
  auto batch = static_cast<int64_t>(program.batch());
  BatchPlan plan = BatchPlan::evaluation(samples, {control.rank(), control.size(), batch});
  Destinations destinations = destinationsOf(session, programName, dataset.inputs());
  BatchLoader loader(dataset, plan, 0, {}, destinations, session.loaderThreads());
  EvaluationFailure failure;
  try {
    for (int64_t step = 0; step < plan.steps(); ++step) {
      BatchLoader::Loaded loaded = loader.acquire();
      setEvaluationScalars(session, seed, (step * control.size() + control.rank()) * batch, batch,
                           loaded.batch.valid);
      session.run(programName, loaded.slot, static_cast<uint64_t>(step));
      totals.add(session.results(programName, loaded.slot));
      loader.release();
    }
  } catch (const std::exception &) {
    failure = EvaluationFailure::current();
  }
  return sumOverRanks(control, std::move(totals), failure);
}

EvaluationFailure EvaluationFailure::current() {
  EvaluationFailure failure;
  try {
    throw;
  } catch (const Error &problem) {
    failure.text = problem.what();
    failure.isOfData = problem.code == ErrorCode::BadInput;
  } catch (const std::exception &problem) {
    failure.text = problem.what();
    failure.isOfData = false;
  }
  return failure;
}

Totals sumOverRanks(ControlPlane &control, Totals totals, const EvaluationFailure &failure) {
  bool failed = !failure.text.empty();
  std::vector<double> sums = totals.numbers();
  sums.push_back(failed ? 1 : 0);
  sums.push_back(failed && !failure.isOfData ? 1 : 0);
  control.sum(sums, "sum of the evaluation's metrics");
  bool isOfData = sums.back() == 0;
  sums.pop_back();
  if (sums.back() > 0)
    throw CollectiveError(isOfData ? ErrorCode::BadInput : ErrorCode::Runtime,
                          firstError(control, failure.text));
  sums.pop_back();
  totals.setNumbers(sums);
  return totals;
}

} // namespace dlc::rt
