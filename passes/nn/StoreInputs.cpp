// dlc-store-inputs: inputs of @train and @eval come as the files of their sources hold them.

#include "dialects/NN/Elementwise.h"
#include "passes/Passes.h"
#include "passes/nn/BlockTables.h"
#include "runtime/data/steps/StoredInputs.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_STOREINPUTS
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
/// True if a dimension of the type is the channels of a sample, [channels, spatial...], whichever
/// axes the files have. Of maps without channels it could be a spatial one.
bool hasChannels(RankedTensorType type) { return type.getRank() != 1 && type.getRank() != 3; }

/// Takes an input as its source holds it.
class InputRewriter {
public:
  InputRewriter(ProgramOp program, unsigned index)
      : program(program), input(program.getArgument(index)), name(program.getInputName(index)),
        type(tensorType(input)), b(program.getLoc(), program.getContext()) {
    b.setInsertionPointToStart(&program.getBody().front());
  }

  void rewrite(Type stored, bool isNormalized) {
    input.setType(type.clone(stored));
    auto wide = CastOp::create(b, type, input);
    Value value = wide;
    if (isNormalized) {
      value = SubOp::create(b, type, value, factor(shiftSuffix));
      value = MulOp::create(b, type, value, factor(scaleSuffix));
    }
    input.replaceAllUsesExcept(value, wide);
    program.updateFunctionType();
  }

private:
  /// Of each row and channel, for all of its elements.
  Value factor(StringRef suffix) {
    auto own = RankedTensorType::get({type.getDimSize(0), type.getDimSize(1)}, b.getF32Type());
    unsigned index = program.getNumArguments();
    NamedAttribute attribute(b.getStringAttr("nn.input"), b.getStringAttr(name + suffix));
    (void)program.insertArgument(index, own, b.getDictionaryAttr(attribute), input.getLoc());
    return BroadcastOp::create(b, type, program.getArgument(index), ArrayRef<int64_t>{0, 1});
  }

  ProgramOp program;
  BlockArgument input;
  std::string name;
  RankedTensorType type;
  ImplicitLocOpBuilder b;
};

class StoreInputsPass : public dlc::impl::StoreInputsBase<StoreInputsPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    ModelOp model = getOperation();
    if (failed(requireStage(model, nn::Stage::NN)) ||
        (!sources.empty() && (failed(readTypes(model)) || failed(storeInputs(model)))))
      return signalPassFailure();
  }

private:
  /// "image=u8,mask=u8"
  LogicalResult readTypes(ModelOp model) {
    types.clear();
    for (StringRef entry : llvm::split(StringRef(sources), ',')) {
      auto [source, element] = entry.split('=');
      unsigned width = element == "u8" ? 8 : element == "u16" ? 16 : 0;
      if (source.empty() || width == 0)
        return model.emitError("source '")
               << entry << "' is not NAME=u8 or NAME=u16, what its files hold";
      types[source.str()] = IntegerType::get(&getContext(), width, IntegerType::Unsigned);
    }
    return success();
  }

  LogicalResult storeInputs(ModelOp model) {
    std::string reason;
    std::optional<rt::InputOrigins> origins =
        rt::inputOrigins(dataPipeline(model->getAttrOfType<DictionaryAttr>("data")), reason);
    if (!origins)
      return model.emitError(reason);
    std::set<std::string> known;
    for (auto program : model.getBody().getOps<ProgramOp>())
      for (unsigned i = 0, inputs = program.getNumArguments(); i < inputs; ++i) {
        rt::InputOrigin origin = rt::originOf(*origins, program.getInputName(i).str());
        known.insert(origin.source);
        if (program.getSymName() != "predict" && types.contains(origin.source))
          store(program, i, origin);
      }
    for (const auto &[source, type] : types)
      if (!known.contains(source))
        return model.emitError("no input is from source '")
               << source << "'; the model reads " << llvm::join(known, ", ");
    model->setAttr("sources", StringAttr::get(&getContext(), sources));
    return success();
  }

  /// An input stays as it is where values of files are not all that it depends on.
  void store(ProgramOp program, unsigned index, const rt::InputOrigin &origin) {
    auto type = tensorType(program.getArgument(index));
    if (!type.getElementType().isF32())
      return;
    if (!origin.isStored || (origin.normalize && !hasChannels(type))) {
      if (program.getSymName() == "train")
        program.emitWarning("input '") << program.getInputName(index) << "' stays f32, since steps "
                                       << "of the data block compute it on the host";
      return;
    }
    InputRewriter(program, index).rewrite(types.at(origin.source), origin.normalize.has_value());
  }

  std::map<std::string, Type> types; // by source
};
} // namespace
