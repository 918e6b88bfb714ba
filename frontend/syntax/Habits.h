// Habits from other languages: what a word or sign of Python, C or torch is called here. Only
// messages use it, so that an error says what to write instead.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace dlc::fe {

/// "; write ..." for a word or sign that has a place in the syntax of other languages, else "".
std::string syntaxHint(llvm::StringRef text);

/// The hint for a name that nothing here has: the syntax or the function it is elsewhere, else
/// which of the known names it may be.
std::string nameHint(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known);

/// The message for a sign at the start of `rest` that no text of this language contains, and the
/// sign's length; null for any other. The message lives as long as the program.
const char *foreignSign(llvm::StringRef rest, size_t &length);

} // namespace dlc::fe
