// A layer is an op that the model's author called: neighbouring ops of one layer name are one row,
// which shows the last one's result. The JSON is the one source; the text formats it.

#include "tools/dlc/InspectModel.h"

#include <iomanip>

using namespace mlir;
using namespace dlc;
using nlohmann::ordered_json;

static std::string typeText(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << tensor.getElementType() << '[';
  llvm::interleaveComma(tensor.getShape(), os);
  os << ']';
  return text;
}

static nn::ProgramOp mainProgram(nn::ModelOp model) {
  auto programs = model.getBody().getOps<nn::ProgramOp>();
  auto train = llvm::find_if(programs, [](nn::ProgramOp p) { return p.getSymName() == "train"; });
  return train != programs.end() ? *train : *programs.begin();
}

static ordered_json describeInputs(nn::ProgramOp program) {
  ordered_json inputs = ordered_json::array();
  for (BlockArgument input : program.getBody().getArguments())
    inputs.push_back({{"name", program.getInputName(input.getArgNumber()).str()},
                      {"type", typeText(input.getType())}});
  return inputs;
}

static ordered_json describeLayers(nn::ProgramOp program) {
  llvm::StringMap<int64_t> elements; // of parameters by layer
  for (auto variable : program->getParentOfType<nn::ModelOp>().getBody().getOps<nn::VariableOp>())
    if (variable.getKind() == nn::VariableKind::Parameter)
      elements[variable.getSymName().rsplit('.').first] +=
          cast<RankedTensorType>(variable.getType()).getNumElements();
  ordered_json layers = ordered_json::array();
  for (Operation &op : program.getBody().front()) {
    StringRef name = nn::layerName(op.getLoc());
    if (name.empty() || !op.hasTrait<nn::Layer>())
      continue;
    layers.push_back({{"name", name.str()},
                      {"op", op.getName().stripDialect().str()},
                      {"output", typeText(op.getResult(0).getType())},
                      {"parameters", elements.lookup(name)}});
  }
  return layers;
}

ordered_json dlc::describeModel(nn::ModelOp model) {
  nn::ProgramOp program = mainProgram(model);
  ordered_json parameters = ordered_json::array();
  int64_t count = 0, state = 0;
  for (auto variable : model.getBody().getOps<nn::VariableOp>()) {
    int64_t elements = cast<RankedTensorType>(variable.getType()).getNumElements();
    if (variable.getKind() == nn::VariableKind::State)
      state += elements;
    if (variable.getKind() != nn::VariableKind::Parameter)
      continue;
    count += elements;
    parameters.push_back({{"name", variable.getSymName().str()},
                          {"type", typeText(variable.getType())},
                          {"elements", elements}});
  }
  auto batch = model->getAttrOfType<IntegerAttr>("batch");
  return {{"model", model.getSymName().str()},
          {"batch", batch ? batch.getInt() : 0},
          {"program", program.getSymName().str()},
          {"inputs", describeInputs(program)},
          {"layers", describeLayers(program)},
          {"parameter_count", count},
          {"state_count", state},
          {"parameters", parameters}};
}

void dlc::describeTiling(nn::ModelOp model, ordered_json &description) {
  description["tiling"] = nullptr;
  if (auto tiling = model->getAttrOfType<DictionaryAttr>("tiling"))
    for (StringRef name : {"overlap", "alignment"})
      description["tiling"][name.str()] = tiling.getAs<DenseI64ArrayAttr>(name).asArrayRef().vec();
  auto untiled = model->getAttrOfType<StringAttr>("untiled");
  description["untiled"] = untiled ? untiled.str() : "";
}

//===- Text -----------------------------------------------------------------------------------===//

/// 1199882 -> "1,199,882".
static std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(i, ",");
  return digits;
}

/// Columns as wide as their widest cell; the last one is for numbers and aligned right.
static void printTable(const std::vector<std::vector<std::string>> &rows, std::ostream &out) {
  std::vector<size_t> widths(rows.front().size());
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  for (const std::vector<std::string> &row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      bool last = i + 1 == row.size();
      out << "  " << (last ? std::right : std::left) << std::setw(widths[i]) << row[i];
    }
    out << "\n";
  }
  out << "\n";
}

void dlc::printModel(const ordered_json &description, std::ostream &out) {
  auto text = [](const ordered_json &value) { return value.get<std::string>(); };
  auto number = [](const ordered_json &value) { return grouped(value.get<int64_t>()); };
  out << text(description["model"]) << ", batch " << description["batch"] << "\n\n";
  for (const ordered_json &input : description["inputs"])
    out << "  input " << text(input["name"]) << " : " << text(input["type"]) << "\n";
  out << "\n";

  std::vector<std::vector<std::string>> rows = {{"layer", "op", "output", "parameters"}};
  for (const ordered_json &layer : description["layers"])
    rows.push_back({text(layer["name"]), text(layer["op"]), text(layer["output"]),
                    layer["parameters"] == 0 ? "-" : number(layer["parameters"])});
  printTable(rows, out);

  rows = {{"parameter", "type", "elements"}};
  for (const ordered_json &parameter : description["parameters"])
    rows.push_back(
        {text(parameter["name"]), text(parameter["type"]), number(parameter["elements"])});
  printTable(rows, out);
  out << "  " << number(description["parameter_count"]) << " parameters";
  if (description["state_count"] != 0)
    out << ", " << number(description["state_count"]) << " numbers of state";
  out << "\n";
  if (const ordered_json &tiling = description["tiling"]; !tiling.is_null())
    out << "  prediction of larger images by tiles that are exact " << tiling["overlap"].dump()
        << " pixels off their edges and start at multiples of " << tiling["alignment"].dump()
        << "\n";
  if (std::string untiled = description["untiled"]; !untiled.empty())
    out << "  prediction of images of one size only, as no tiles can be cut: " << untiled << "\n";
}
