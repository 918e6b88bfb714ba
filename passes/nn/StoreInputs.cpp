// dlc-store-inputs: inputs of @train and @eval come as the files of their sources hold them.

#include "dialects/NN/Elementwise.h"
#include "dialects/NN/InputRange.h"
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
      auto type = IntegerType::get(&getContext(), width, IntegerType::Unsigned);
      if (!types.try_emplace(source.str(), type).second)
        return model.emitError("source '") << source << "' is given twice";
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
    std::set<rt::StepPlace> onHost; // steps that some input still needs there
    auto forInputs = [&](auto body) {
      for (auto program : model.getBody().getOps<ProgramOp>())
        for (unsigned i = 0, inputs = program.getNumArguments(); i < inputs; ++i)
          body(program, i, rt::originOf(*origins, program.getInputName(i).str()));
    };
    forInputs([&](ProgramOp program, unsigned index, const rt::InputOrigin &origin) {
      known.insert(origin.source);
      if (program.getSymName() != "predict" && origin.normalize &&
          !canStore(program, index, origin))
        onHost.insert(*origin.normalize);
    });
    for (const auto &[source, type] : types)
      if (!known.contains(source))
        return model.emitError("no input is from source '")
               << source << "'; the model reads " << llvm::join(known, ", ");
    forInputs([&](ProgramOp program, unsigned index, const rt::InputOrigin &origin) {
      bool isShared = origin.normalize && onHost.contains(*origin.normalize);
      if (program.getSymName() != "predict" && types.contains(origin.source))
        store(program, index, origin, canStore(program, index, origin) && !isShared);
    });
    std::vector<std::string> given;
    for (const auto &[source, type] : types)
      given.push_back(source + "=u" + std::to_string(type.getIntOrFloatBitWidth()));
    model->setAttr("sources", StringAttr::get(&getContext(), llvm::join(given, ",")));
    return success();
  }

  /// True if an input is all that its files hold, or is so already.
  bool canStore(ProgramOp program, unsigned index, const rt::InputOrigin &origin) const {
    auto type = tensorType(program.getArgument(index));
    bool isNumber = type.getElementType().isF32() && !mayBeClass(program, index);
    return type.getElementType().isUnsignedInteger() ||
           (isNumber && types.contains(origin.source) && origin.isStored &&
            (!origin.normalize || type.getRank() > 1));
  }

  /// A number for each sample, which loss or metric look at, may be that of a folder.
  static bool mayBeClass(ProgramOp program, unsigned index) {
    return tensorType(program.getArgument(index)).getRank() <= 2 &&
           program.getArgAttr(index, inputRange);
  }

  void store(ProgramOp program, unsigned index, const rt::InputOrigin &origin, bool isStored) {
    if (!tensorType(program.getArgument(index)).getElementType().isF32() ||
        mayBeClass(program, index))
      return;
    if (isStored)
      InputRewriter(program, index).rewrite(types.at(origin.source), origin.normalize.has_value());
    else if (program.getSymName() == "train")
      program.emitWarning("input '") << program.getInputName(index)
                                     << "' stays f32, since the host computes it, or its normalize "
                                        "for another input";
  }

  std::map<std::string, Type> types; // by source
};
} // namespace
