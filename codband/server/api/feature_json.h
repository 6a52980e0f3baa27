#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codband/features/hashed_features.h"
#include "codband/server/api/json_value.h"

namespace codband::server {

// Readers of features in JSON. Errors are those of json_value.h.

// The features of an item. If `dim` is fixed: `dim` numbers, or named features, which are hashed
// into as many. If it is 0 every name is to have a column: an array of numbers goes to `features`,
// an object of named features or an array of such objects to `named`, unhashed.
Status ReadFeatures(dom::element value, const Place& place, std::size_t dim,
                    std::vector<double>& features, std::vector<features::NamedFeature>& named);

// The features of a context: an object, or an array of objects. The value at the path `user_from`
// ("user.id"), if there is one, is no feature.
Status ReadContext(dom::element value, const Place& place, std::string_view user_from,
                   std::vector<features::NamedFeature>& named);

// The id of the user at that path of a context, as text; empty if there is none.
Status ReadUserFrom(dom::element context, const Place& place, std::string_view path,
                    std::string& user);

// Refuses a list that has the same feature twice, which would silently add up.
Status CheckFeaturesDiffer(const Place& place, const std::vector<features::NamedFeature>& named);

}  // namespace codband::server
