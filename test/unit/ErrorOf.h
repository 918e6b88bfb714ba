// The runtime's errors as tests see them.
#pragma once

#include "runtime/artifact/Error.h"

#include <gtest/gtest.h>

#include <string>

namespace dlc::rt::test {

/// The message of the Error that `body` throws, which is one line; "no error" if it throws none.
template <typename Body> std::string errorOf(Body &&body) {
  try {
    body();
  } catch (const Error &error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "no error";
}

} // namespace dlc::rt::test
