// SPDX-License-Identifier: Apache-2.0

// What is shown of records, for every table of the schema.

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/tools/synthetic_reader.h"
#include "tools/chrome_export.h"
#include "tools/launch_json.h"
#include "tools/record_json.h"
#include "tools/record_text.h"

namespace heddle::tools {
namespace {

TEST(RecordJson, EveryRecordIsOneLineOfValidJsonWithItsNumberAndType) {
  const auto reader = SyntheticReader();
  RecordContext context(*reader, false);
  for (const trace::Record& record : reader->records()) {
    const std::string line = DumpJson(RecordToJson(record, context));
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const Json json = Json::parse(line);
    EXPECT_EQ(json["call"], record.index);
    EXPECT_EQ(json["type"], trace::RecordTypeName(record.type));
    context.Follow(record);
  }
}

TEST(RecordJson, AnUnknownTypeIsShownByItsSize) {
  const auto reader = SyntheticReader();
  const RecordContext context(*reader, false);
  trace::Record record;
  record.type = static_cast<fb::RecordType>(777);
  const uint8_t bytes[3] = {};
  record.payload = bytes;
  EXPECT_EQ(DumpJson(RecordToJson(record, context)),
            "{\"call\":0,\"type\":\"type-777\",\"bytes\":3}");
  EXPECT_EQ(RecordToText(record, context), "type-777    bytes=3\n");
}

// Tables without any field set are well-formed; nothing may rely on fields.
template <typename Table>
void ExpectShown(const RecordContext& context) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(
      flatbuffers::Offset<Table>(builder.EndTable(builder.StartTable())));
  trace::Record record;
  record.type = trace::internal::RecordTypeOf<Table>::value;
  record.payload =
      absl::MakeConstSpan(builder.GetBufferPointer(), builder.GetSize());
  const Json json = RecordToJson(record, context);
  EXPECT_EQ(json["type"], trace::RecordTypeName(record.type));
  EXPECT_EQ(RecordToText(record, context).back(), '\n');
  EXPECT_EQ(StampOf(record), nullptr);
}

TEST(RecordJson, EmptyTablesAreShownAsWell) {
  const auto reader = SyntheticReader();
  const RecordContext context(*reader, false);
#define HEDDLE_CHECK(Table) ExpectShown<fb::Table>(context);
  HEDDLE_RECORD_TABLES(HEDDLE_CHECK)
#undef HEDDLE_CHECK
}

TEST(RecordJson, TextThatIsNotUtf8IsReplaced) {
  EXPECT_EQ(DumpJson(Json("a\xff")), "\"a\uFFFD\"");
}

TEST(RecordJson, EnumsAreLowerCaseWords) {
  const auto text = [](auto value, const char* name) {
    return EnumText(value, name);
  };
  EXPECT_EQ(text(fb::MemcpyKind::kDtoH,
                 fb::EnumNameMemcpyKind(fb::MemcpyKind::kDtoH)),
            "dtoh");
  EXPECT_EQ(text(fb::SnapshotWhen::kStepBegin,
                 fb::EnumNameSnapshotWhen(fb::SnapshotWhen::kStepBegin)),
            "step-begin");
  EXPECT_EQ(text(fb::GraphExecOp::kNodeUpdate,
                 fb::EnumNameGraphExecOp(fb::GraphExecOp::kNodeUpdate)),
            "node-update");
  EXPECT_EQ(text(fb::ScalarType::kBF16,
                 fb::EnumNameScalarType(fb::ScalarType::kBF16)),
            "bf16");
  const auto unknown = static_cast<fb::MemcpyKind>(99);
  EXPECT_EQ(text(unknown, fb::EnumNameMemcpyKind(unknown)), "99");
}

TEST(ChromeExport, EveryArrowHasASliceToStartAndToEndAt) {
  const auto reader = SyntheticReader();
  auto steps = trace::FindSteps(*reader, {});
  ASSERT_TRUE(steps.ok());
  std::string text;
  ExportChrome(
      *reader, *steps, [](const trace::Record&) { return true; }, false,
      [&text](const std::string& piece) { text += piece; });
  const Json json = Json::parse(text);
  std::map<std::string, int> slices;  // by lane and time
  std::map<std::string, int> phases;
  const auto key = [](const Json& event) {
    return absl::StrCat(event["pid"].get<int>(), " ", event["tid"].get<int>(),
                        " ", event["ts"].get<double>());
  };
  for (const Json& event : json["traceEvents"]) {
    ++phases[event["ph"].get<std::string>()];
    if (event["ph"] == "X") ++slices[key(event)];
  }
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "s" || event["ph"] == "f") {
      EXPECT_EQ(slices[key(event)], 1);
    }
  }
  EXPECT_EQ(phases["s"], phases["f"]);
  EXPECT_GT(phases["s"], 70);
  EXPECT_EQ(phases["B"], phases["E"]);
}

}  // namespace
}  // namespace heddle::tools
