// SPDX-License-Identifier: Apache-2.0
#include "runtime/record/measure.h"

#include <atomic>

#include "heddle/measure.h"
#include "runtime/record/hooks.h"
#include "runtime/record/recorder.h"

namespace heddle::record {
namespace {

const char* Description(int mode) {
  switch (mode) {
    case HEDDLE_MEASURE_DETACHED:
      return "measurement: work is not recorded from here on";
    case HEDDLE_MEASURE_WRITING:
      return "measurement: all work is written from here on";
    default:
      return "measurement: recording goes on as its options say";
  }
}

int Switch(Recorder& recorder, int mode) {
  if (mode != HEDDLE_MEASURE_ATTACHED) {
    // A step that is being recorded, and the launches that a capture turns into
    // a graph, are to be whole.
    if (recorder.any_capture() || !recorder.steps().Pause()) {
      return HEDDLE_MEASURE_BUSY;
    }
  }
  recorder.set_writes_work(mode == HEDDLE_MEASURE_WRITING ||
                           !recorder.options().window_steps);
  // Severity 1: from here on something is missing in the trace.
  recorder.Note(mode == HEDDLE_MEASURE_DETACHED ? 1 : 0, Description(mode));
  SwitchWorkHooks(recorder.interposer(), mode != HEDDLE_MEASURE_DETACHED);
  if (mode == HEDDLE_MEASURE_ATTACHED) recorder.steps().Resume();
  if (Recorder::Current() != &recorder) {
    // It finished meanwhile, and its hooks may have been set again here.
    ClearHooks(recorder.interposer());
    return HEDDLE_MEASURE_OFF;
  }
  return HEDDLE_MEASURE_DONE;
}

}  // namespace

int Measure(int mode) {
  static std::atomic<bool> busy{false};
  if (mode < HEDDLE_MEASURE_ATTACHED || mode > HEDDLE_MEASURE_WRITING) {
    return HEDDLE_MEASURE_BAD_MODE;
  }
  if (busy.exchange(true)) return HEDDLE_MEASURE_BUSY;
  int result = HEDDLE_MEASURE_OFF;
  WithRecorder([&](Recorder& recorder) { result = Switch(recorder, mode); });
  busy.store(false);
  return result;
}

}  // namespace heddle::record
