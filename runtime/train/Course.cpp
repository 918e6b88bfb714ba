#include "runtime/train/Course.h"

#include <algorithm>

namespace dlc::rt {

bool Course::isOver(const RunState &state) const {
  return state.monitor.shouldStop() ||
         (state.step >= totalSteps && state.stepInEpoch < stepsPerEpoch && state.told);
}

Course courseOf(int64_t stepsPerEpoch, const TrainOptions &options, const RunState &state,
                int64_t share) {
  Course course;
  course.stepsPerEpoch = stepsPerEpoch;
  course.share = share;
  int64_t place = state.place(stepsPerEpoch);
  int64_t stepsEnd = place + options.steps.value_or(0) - state.step;
  course.epochs = options.epochs ? course.epochsOf(*options.epochs)
                                 : (stepsEnd + stepsPerEpoch - 1) / stepsPerEpoch;
  course.end = course.epochs * stepsPerEpoch;
  if (options.steps)
    course.end = std::min(course.end, stepsEnd);
  course.totalSteps = state.step + course.end - place;
  return course;
}

static std::string counted(int64_t count, const std::string &what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string nothingToDoText(const Course &course, const TrainOptions &options,
                            const RunState &state) {
  std::string text = "nothing to do";
  for (const std::string &name : options.overrides)
    text += (&name == &options.overrides.front() ? " with --override " : ",") + name;
  text += ": the run has done " + counted(state.step, "step") + ", " +
          counted(state.epoch, "whole epoch");
  if (state.monitor.shouldStop())
    return text + ", and stopped early; --override early_stop takes a model that stops later";
  return text + ", and was to do " +
         (options.steps ? counted(*options.steps, "step") : counted(course.epochs, "epoch")) +
         "; go on with --steps above " + std::to_string(state.step) + " or --epochs above " +
         std::to_string(state.epoch * course.share);
}

} // namespace dlc::rt
