#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "codband/store/store.h"

namespace codband::store {

// Opens what is left of a damaged store, on a copy of it in `work`, which must not exist: table
// files are linked, the rest is copied, nothing in `directory` changes. Records of the write-ahead
// log that are damaged are left out; if the list of files is damaged it is made anew from the files
// that are there, unless its copy is sound: `list_made_anew` says that records may then be older
// than they were. `notes` say what of this was needed. Damaged blocks of table files stay damaged:
// read with ScanPastDamage. kUnavailable if a process has the directory open, kNotFound if there is
// no store.
Result<std::unique_ptr<Store>> OpenDamagedStore(const std::filesystem::path& directory,
                                                const std::filesystem::path& work,
                                                std::vector<std::string>& notes,
                                                bool& list_made_anew);

}  // namespace codband::store
