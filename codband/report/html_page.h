#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/report/table.h"

namespace codband::report {

// Builds a self-contained HTML file: inline style, no scripts, no network access. Light or dark by
// the reader's setting; wide tables and commands scroll in their own box, so that the page itself
// never scrolls sideways. Parts appear in the order in which they are added. All text is escaped;
// only the SVG of AddFigure is trusted. Not thread-safe.
class HtmlPage {
 public:
  // The title is the document's title and its first heading.
  explicit HtmlPage(std::string_view title);

  // A section heading.
  void AddHeading(std::string_view text);
  // What the page says, in a sentence or two, set large.
  void AddLead(std::string_view text);
  void AddParagraph(std::string_view text);
  // An empty caption is omitted.
  void AddTable(const ReportTable& table, std::string_view caption = "");
  // `svg` is embedded verbatim. Precondition: well-formed SVG from our own charts, never
  // from user input.
  void AddFigure(std::string_view svg, std::string_view caption = "");
  // Preformatted text, such as the command that reproduces a result.
  void AddCommand(std::string_view command);
  // Name-value pairs, such as the settings of a run.
  void AddKeyValues(const std::vector<std::pair<std::string, std::string>>& items);

  // The whole document so far.
  std::string ToHtml() const;

 private:
  std::string title_;  // escaped
  std::string body_;
};

}  // namespace codband::report
