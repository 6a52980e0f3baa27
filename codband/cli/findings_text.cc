// Apart from the rest: the store has a Table too.
#include "codband/cli/findings.h"
#include "codband/report/table.h"

namespace codband {

std::string FindingsText(const std::vector<Finding>& findings) {
  Table table({{"part"}, {"sound"}, {"what is there"}});
  for (const Finding& finding : findings) {
    table.AddRow({finding.part, finding.sound ? "yes" : "NO", finding.text});
  }
  return table.ToText();
}

}  // namespace codband
