// What dlc help prints.
#include "frontend/Frontend.h"
#include "frontend/operators/Operators.h"

#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <string>

using namespace dlc::fe;

TEST(Help, PrintsEveryEntryAndItsArguments) {
  for (llvm::ArrayRef<CallSpec> table : {operatorTable(), configurationTable()})
    for (const CallSpec &spec : table) {
      std::string text;
      llvm::raw_string_ostream os(text);
      EXPECT_TRUE(printHelp(spec.name, os));
      EXPECT_EQ(text.find(spec.name.str() + "("), 0u);
      EXPECT_FALSE(spec.summary.empty()) << text;
      for (const ArgumentSpec &argument : spec.arguments) {
        EXPECT_NE(text.find("\n  " + argument.name.str()), std::string::npos) << text;
        EXPECT_FALSE(argument.doc.empty()) << text;
      }
    }
}

TEST(Help, SuggestsTheNearestName) {
  std::string text;
  llvm::raw_string_ostream os(text);
  EXPECT_FALSE(printHelp("drop_out", os));
  EXPECT_NE(text.find("did you mean 'dropout'?"), std::string::npos);
}
