#include "codband/cli/findings_text.h"

#include "codband/report/table.h"

namespace codband::cli {

std::string FindingsText(const std::vector<server::Finding>& findings) {
  report::ReportTable table({{"part"}, {"sound"}, {"what is there"}});
  for (const server::Finding& finding : findings) {
    table.AddRow({finding.part, finding.sound ? "yes" : "NO", finding.text});
  }
  return table.ToText();
}

}  // namespace codband::cli
