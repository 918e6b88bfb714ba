// Directories as people keep their data: a folder for each class, masks beside images.
#include "runtime/data/Dataset.h"
#include "runtime/data/Png.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/Calls.h"
#include "test/unit/data/TestFiles.h"

#include <gtest/gtest.h>

namespace dlc::rt::test {
namespace {

namespace fs = std::filesystem;
using artifact::DType;
using Names = std::vector<std::string>;

class Directories : public ::testing::Test {
protected:
  /// Images of 1 x 2 pixels, the first one `value`.
  void image(const std::string &name, uint8_t value = 0) {
    fs::path path = directory / name;
    fs::create_directories(path.parent_path());
    writePng(path.string(), 1, 2, std::vector<uint8_t>{value, 0});
  }

  /// A classifier of three classes.
  Dataset classify(const std::string &images, const std::string &labels) {
    return Dataset({},
                   {{"image", DType::F32, {1, 1, 1, 2}, {}, true},
                    {"label", DType::I32, {1}, ValueRange{0, 2}, false}},
                   {"image", "label"},
                   {{"image", directory / images}, {"label", directory / labels}});
  }

  Dataset segment(const std::string &images, const std::string &masks) {
    return Dataset({},
                   {{"image", DType::F32, {1, 1, 1, 2}, {}, true},
                    {"mask", DType::F32, {1, 1, 1, 2}, {}, false}},
                   {"image", "mask"}, {{"image", directory / images}, {"mask", directory / masks}});
  }

  std::string in(const std::string &name) { return "'" + (directory / name) + "'"; }

  TemporaryDirectory directory;
};

//===- Classes --------------------------------------------------------------------------------===//

/// Of images and masks, as long as memory holds all of them.
TEST_F(Directories, ImagesAreHeldWhereAllAre) {
  for (const char *name : {"images/a.png", "images/b.png", "masks/a.png", "masks/b.png"})
    image(name);
  constexpr size_t bytes = 4 * 2;
  for (size_t limit : {bytes, bytes - 1}) {
    Dataset dataset({},
                    {{"image", DType::F32, {1, 1, 1, 2}, {}, true},
                     {"mask", DType::F32, {1, 1, 1, 2}, {}, false}},
                    {"image", "mask"},
                    {{"image", directory / "images"}, {"mask", directory / "masks"}}, false,
                    std::make_shared<ImageCache>(limit));
    bool isHeld = limit == bytes;
    EXPECT_EQ(dataset.holdArrays({}), std::vector<uint64_t>(isHeld ? 4 : 0, 2));
    std::vector<Sample> first = dataset.unreadSample(1, {}), again = dataset.unreadSample(1, {});
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(first[i].unread->isHeld, isHeld);
    EXPECT_TRUE(!isHeld || first[0].unread->bytes.data() == again[0].unread->bytes.data());
  }
}

TEST_F(Directories, FoldersAreClassesInTheOrderOfTheirNames) {
  image("set/dog/b.png", 11);
  image("set/cat/z.png", 10);
  image("set/dog/a.png", 12);
  image("set/eel/deep/er/a.png", 13); // a class's folder may have folders
  image("set/.cache/a.png");
  writeFile(directory / "set/notes.txt", "not an image");
  Dataset dataset = classify("set", "set");
  EXPECT_EQ(dataset.sampleNames(), (Names{"cat/z", "dog/a", "dog/b", "eel/deep/er/a"}));
  std::vector<float> pixels, classes;
  for (int64_t i = 0; i < dataset.samples(); ++i) {
    std::vector<Sample> sample = dataset.sample(i, {});
    pixels.push_back(sample[0].values[0]);
    classes.push_back(sample[1].values[0]);
    EXPECT_TRUE(sample[1].shape.empty());
  }
  EXPECT_EQ(pixels, (std::vector<float>{10, 12, 11, 13}));
  EXPECT_EQ(classes, (std::vector<float>{0, 1, 1, 2}));
  EXPECT_EQ(dataset.classes().at("label"), (Names{"cat", "dog", "eel"}));
  EXPECT_EQ(dataset.notices(),
            (Names{"label numbers the folders of " + in("set") + ": 0 cat, 1 dog, 2 eel"}));
}

/// A class of many images each: names sort as text, in folders as among them.
TEST_F(Directories, ClassesThatBeginAlikeStayApart) {
  for (const char *name : {"a-b/x", "a/x", "a/y", "aa/x"})
    image("set/" + std::string(name) + ".png");
  Dataset dataset = classify("set", "set");
  std::vector<float> classes;
  for (int64_t i = 0; i < 4; ++i)
    classes.push_back(dataset.sample(i, {})[1].values[0]);
  EXPECT_EQ(dataset.sampleNames(), (Names{"a-b/x", "a/x", "a/y", "aa/x"}));
  EXPECT_EQ(dataset.classes().at("label"), (Names{"a", "a-b", "aa"}));
  EXPECT_EQ(classes, (std::vector<float>{1, 0, 0, 2}));
}

TEST_F(Directories, ClassesMayBecomeOneHot) {
  image("set/cat/a.png");
  image("set/dog/a.png");
  artifact::DataPipelineT pipeline;
  pipeline.chains.push_back(std::make_unique<artifact::DataChainT>());
  pipeline.chains[0]->inputs = pipeline.chains[0]->outputs = {"label"};
  pipeline.chains[0]->steps.push_back(makeCall("one_hot", {ints("classes", {2})}));
  Dataset dataset(pipeline, {{"label", DType::F32, {1, 2}, ValueRange{0, 1}, false}}, {"label"},
                  {{"label", directory / "set"}});
  EXPECT_EQ(dataset.sample(1, {})[0].values, (std::vector<float>{0, 1}));
}

TEST_F(Directories, ClassesThatCannotBeNumberedAreRefused) {
  image("set/cat/a.png");
  image("set/dog/a.png");
  fs::create_directories(directory / "set/eel");
  EXPECT_EQ(errorOf([&] { classify("set", "set"); }),
            "the folder " + in("set/eel") + " holds no PNG, TIFF or JPEG images: each folder of " +
                in("set") + " is a class; put images into it, or take it away");
  image("set/eel/a.png");
  image("set/fox/a.png");
  std::string message = errorOf([&] { classify("set", "set"); });
  EXPECT_EQ(message, in("set") + ": sample 3 (fox/a) has the value 3, but the loss or metric on "
                                 "input label takes 0..2: number the classes from 0, compile the "
                                 "model for more of them, or have every loss and metric on them "
                                 "ignore this one (ignore = CLASS)");
  image("flat/a.png");
  EXPECT_EQ(errorOf([&] { classify("flat", "flat"); }),
            in("flat") + " holds images, but label takes the class of each: put them into a folder "
                         "for each class, or give a file of class numbers");
  fs::create_directories(directory / "none");
  EXPECT_EQ(errorOf([&] { classify("none", "none"); }),
            in("none") + " holds no PNG, TIFF or JPEG images");
}

//===- Pairs ----------------------------------------------------------------------------------===//

TEST_F(Directories, MasksAreNamedForTheirSource) {
  for (const char *name : {"b", "a", "c", "d"}) {
    image("one/" + std::string(name) + ".png", static_cast<uint8_t>(name[0]));
    image("one/" + std::string(name) + "_mask.png", static_cast<uint8_t>(name[0] - 'a' + 1));
    image("masks/" + std::string(name) + "_mask.png", static_cast<uint8_t>(name[0] - 'a' + 1));
    image("images/" + std::string(name) + ".png", static_cast<uint8_t>(name[0]));
  }
  for (auto [images, masks] :
       {std::pair("one", "one"), std::pair("one", "one/"), std::pair("images", "masks")}) {
    Dataset dataset = segment(images, masks);
    EXPECT_EQ(dataset.sampleNames(), (Names{"a", "b", "c", "d"}));
    for (int64_t i = 0; i < 4; ++i) {
      std::vector<Sample> sample = dataset.sample(i, {});
      EXPECT_EQ(sample[0].values[0], static_cast<float>('a' + i));
      EXPECT_EQ(sample[1].values[0], static_cast<float>(i + 1));
    }
    EXPECT_EQ(dataset.notices(), (Names{"image and mask pair a.png with a_mask.png, b.png with "
                                        "b_mask.png, c.png with c_mask.png, ..."}));
  }
}

/// A prediction is given the images alone, and leaves the masks beside them out.
TEST_F(Directories, MasksBesideImagesAreNoImages) {
  image("one/a.png");
  image("one/a_mask.png");
  image("one/b_mask.png"); // of no image: one itself, for all that is known
  Dataset dataset({}, {{"image", DType::F32, {1, 1, 1, 2}, {}, true}}, {"image", "mask"},
                  {{"image", directory / "one"}}, true);
  EXPECT_EQ(dataset.sampleNames(), (Names{"a", "b_mask"}));
  EXPECT_TRUE(dataset.notices().empty());
}

TEST_F(Directories, BothMayBeNamedForTheirSources) {
  image("one/a_image.png", 1);
  image("one/a_mask.png", 2);
  image("one/b.png", 3); // of neither
  Dataset dataset = segment("one", "one");
  EXPECT_EQ(dataset.sampleNames(), (Names{"a"}));
  EXPECT_EQ(dataset.sample(0, {})[0].values[0], 1);
  EXPECT_EQ(dataset.sample(0, {})[1].values[0], 2);
}

TEST_F(Directories, MissingPartnersAreNamed) {
  for (const char *name : {"one/a.png", "one/a_mask.png", "one/b.png", "images/a.png",
                           "images/c.png", "masks/a_mask.png", "masks/c_seg.png"})
    image(name);
  EXPECT_EQ(errorOf([&] { segment("one", "one"); }),
            in("one") + " has b for image, but " + in("one") +
                " has no image named b or b_mask for mask: add it, or take the other away");
  EXPECT_EQ(errorOf([&] { segment("images", "masks"); }),
            in("images") + " has c for image, but " + in("masks") +
                " has no image named c or c_mask for mask: add it, or take the other away");
  fs::remove(directory / "one/b.png");
  image("one/d_mask.png");
  EXPECT_EQ(errorOf([&] { segment("one", "one"); }),
            in("one") + " has d for mask, but " + in("one") +
                " has no image named d or d_image for image: add it, or take the other away");
}

TEST_F(Directories, AnImageIsNotItsOwnMask) {
  image("one/a.png");
  image("one/a-seg.png");
  EXPECT_EQ(errorOf([&] { segment("one", "one"); }),
            in("one/a.png") + " would be read for image and for mask: name the images of mask "
                              "x_mask, or give them a directory of their own");
  image("masks/a.png");
  image("masks/a_mask.png");
  EXPECT_EQ(errorOf([&] { segment("one", "masks"); }),
            in("masks/a.png") + " and " + in("masks/a_mask.png") +
                " are both image a of mask: take one of them away");
}

} // namespace
} // namespace dlc::rt::test
