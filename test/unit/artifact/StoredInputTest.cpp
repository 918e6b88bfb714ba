// Inputs that come as files hold them, with what is left of normalize for the program: what is
// sound, and what is refused.
#include "test/unit/artifact/ArtifactFault.h"

namespace dlc::rt::test {
namespace {

using artifact::DType;

/// Makes the tiny artifact's image, [rows, 1], bytes that a shift and a scale go with.
void storeImage(TinyArtifact &t) {
  for (artifact::TensorTypeT *type :
       {t.root.buffers[2]->type.get(), t.root.kernels[0]->operands[1].get(),
        t.root.inputs[0]->type.get()})
    type->shape = {tinyElements, 1};
  t.root.buffers[2]->type->dtype = t.root.kernels[0]->operands[1]->dtype = DType::U8;
  t.root.arenas[1]->bytes = t.root.arenas[1]->lower_bound = 448 * 3;
  for (const char *name : {"image.shift", "image.scale"}) {
    auto input = std::make_unique<artifact::ProgramInputT>();
    input->name = name;
    uint64_t offset = 448 * t.program().inputs.size();
    input->buffer = t.addBuffer(name, 1, offset, {tinyElements, 1}, 0, 0, 20);
    for (auto &instruction : t.program().instructions)
      if (auto *upload = instruction->operation.AsUpload(); upload && upload->buffers.front() == 2)
        upload->buffers.push_back(input->buffer);
    t.program().inputs.push_back(std::move(input));
  }
  t.program().inputs[0]->shift = 1;
  t.program().inputs[0]->scale = 2;
}

TEST(StoredInput, BytesWithShiftAndScaleAreSound) { EXPECT_EQ(messageAfter(storeImage), ""); }

class StoredInputFault : public ::testing::TestWithParam<FaultCase> {};

TEST_P(StoredInputFault, IsRefused) {
  std::string message = messageAfter([](TinyArtifact &t) {
    storeImage(t);
    GetParam().change(t);
  });
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

constexpr const char *noFactors = "input 'image' has no shift and scale of its channels";

const FaultCase faults[] = {
    {"NoSuchInput", [](TinyArtifact &t) { t.program().inputs[0]->scale = 3; }, noFactors},
    {"NegativeNumber", [](TinyArtifact &t) { t.program().inputs[0]->shift = -2; }, noFactors},
    {"ShiftAlone", [](TinyArtifact &t) { t.program().inputs[0]->scale = -1; }, noFactors},
    {"OneForBoth", [](TinyArtifact &t) { t.program().inputs[0]->scale = 1; }, noFactors},
    {"Itself", [](TinyArtifact &t) { t.program().inputs[0]->scale = 0; }, noFactors},
    {"OtherChannels",
     [](TinyArtifact &t) {
       t.root.buffers[8]->type->shape = {tinyElements, 2};
       t.root.arenas[1]->bytes = 1728; // as far as that reaches
     },
     noFactors},
    {"OtherRank", [](TinyArtifact &t) { t.root.buffers[8]->type->shape = {tinyElements}; },
     noFactors},
    {"OtherType", [](TinyArtifact &t) { t.root.buffers[8]->type->dtype = DType::I32; }, noFactors},
    {"OfTheModel", [](TinyArtifact &t) { t.root.inputs[0]->name = "image.scale"; }, noFactors},
    {"OfNoInputOfTheModel", [](TinyArtifact &t) { t.root.inputs[0]->name = "other"; }, noFactors},
    {"OfNumbers",
     [](TinyArtifact &t) {
       t.root.buffers[2]->type->dtype = t.root.kernels[0]->operands[1]->dtype = DType::F32;
     },
     noFactors},
    {"InPredictions", [](TinyArtifact &t) { t.program().name = "predict"; },
     "input 'image' has another type than the model's input of that name"},
    {"OfIntegers", [](TinyArtifact &t) { t.root.inputs[0]->type->dtype = DType::I32; },
     "input 'image' has another type than the model's input of that name"},
};

INSTANTIATE_TEST_SUITE_P(All, StoredInputFault, ::testing::ValuesIn(faults),
                         [](const auto &fault) { return fault.param.name; });

} // namespace
} // namespace dlc::rt::test
