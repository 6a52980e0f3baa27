#pragma once

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace codband::report {

// Reads markup in the tests of charts and pages. For tests only.

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

inline bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == ':';
}

// Whether the text has a stray '<' or '&'.
inline bool HasStrayMarkup(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') return true;
    if (text[i] != '&') continue;
    const std::string_view rest = text.substr(i);
    bool known = false;
    for (const char* entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
      known = known || rest.starts_with(entity);
    }
    if (!known) return true;
  }
  return false;
}

// Moves `i` past the attributes of the tag `name`. The first error, or "".
inline std::string AttributeError(std::string_view xml, const std::string& name, std::size_t& i) {
  std::vector<std::string> attributes;
  while (i < xml.size() && xml[i] == ' ') {
    const std::size_t begin = ++i;
    while (i < xml.size() && IsNameChar(xml[i])) ++i;
    const std::string attribute(xml.substr(begin, i - begin));
    if (attribute.empty() || xml.substr(i, 2) != "=\"") return "bad attribute in <" + name;
    const std::size_t end = xml.find('"', i + 2);
    if (end == std::string_view::npos || HasStrayMarkup(xml.substr(i + 2, end - i - 2))) {
      return "bad value of " + attribute;
    }
    for (const std::string& other : attributes) {
      if (other == attribute) return "twice " + attribute + " in <" + name;
    }
    attributes.push_back(attribute);
    i = end + 1;
  }
  return "";
}

// The first error in an XML document, or "" if it is well-formed as far as our charts go: one root,
// tags that nest, quoted attributes, each once, and no stray '<' or '&'.
inline std::string XmlError(std::string_view xml) {
  std::vector<std::string> open;
  int roots = 0;
  std::size_t i = 0;
  while (i < xml.size()) {
    const std::size_t tag = std::min(xml.find('<', i), xml.size());
    const std::string_view text = xml.substr(i, tag - i);
    if (HasStrayMarkup(text)) return "bad text: " + std::string(text);
    if (open.empty() && text.find_first_not_of(" \n") != std::string_view::npos) {
      return "text outside the root";
    }
    if (tag == xml.size()) break;
    i = tag + 1;
    const bool closing = i < xml.size() && xml[i] == '/';
    if (closing) ++i;
    const std::size_t name_begin = i;
    while (i < xml.size() && IsNameChar(xml[i])) ++i;
    const std::string name(xml.substr(name_begin, i - name_begin));
    if (name.empty()) return "tag without a name";
    if (closing) {
      if (open.empty() || open.back() != name) return "unexpected </" + name + ">";
      if (i >= xml.size() || xml[i] != '>') return "bad end of </" + name;
      open.pop_back();
      ++i;
      continue;
    }
    if (std::string error = AttributeError(xml, name, i); !error.empty()) return error;
    if (open.empty() && ++roots > 1) return "second root <" + name;
    if (xml.substr(i, 2) == "/>") {
      i += 2;
    } else if (i < xml.size() && xml[i] == '>') {
      ++i;
      open.push_back(name);
    } else {
      return "bad end of <" + name;
    }
  }
  if (!open.empty()) return "unclosed <" + open.back() + ">";
  return roots == 1 ? "" : "no root";
}

// The texts between each `begin` and the next `end`, in order.
inline std::vector<std::string> Between(std::string_view text, std::string_view begin,
                                        std::string_view end) {
  std::vector<std::string> out;
  for (std::size_t i = text.find(begin); i != std::string_view::npos; i = text.find(begin, i)) {
    i += begin.size();
    out.emplace_back(text.substr(i, text.find(end, i) - i));
  }
  return out;
}

inline std::size_t Count(std::string_view text, std::string_view what) {
  return Between(text, what, "").size();
}

// The end points of the M and L commands of a path.
inline std::vector<std::pair<double, double>> PathPoints(const std::string& path) {
  std::vector<std::pair<double, double>> out;
  for (std::size_t i = path.find_first_of("ML"); i != std::string::npos;
       i = path.find_first_of("ML", i + 1)) {
    char* rest = nullptr;
    const double x = std::strtod(path.c_str() + i + 1, &rest);
    out.emplace_back(x, std::strtod(rest, nullptr));
  }
  return out;
}

}  // namespace codband::report
