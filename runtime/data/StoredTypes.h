// What the files of sources hold, before anything is known of the model that reads them.
#pragma once

#include "runtime/data/SourceNames.h"

namespace dlc::rt {

/// "NAME=u8" or "NAME=u16" for each source whose files hold unsigned integers of at most 16 bits,
/// those to validate with included. Files that cannot be read are nobody's: who needs them says
/// what is wrong.
std::vector<std::string> storedTypes(const DataPaths &data, const DataPaths &validation);

} // namespace dlc::rt
