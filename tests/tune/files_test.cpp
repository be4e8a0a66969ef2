// What the tuner keeps: JSON, spaces as text, logs, caches.
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tune/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using tuning::Outcome;

namespace {

const tuning::Key key{"model 1", "machine", "shapes", "2 threads"};

tuning::Record record(const std::string& schedule, double ratio) {
  tuning::Record result;
  result.schedule = schedule, result.seconds = 2.5e-4, result.ratio = ratio, result.rounds = 7;
  return result;
}

std::string refusal(const std::string& path, const tuning::Key& key, const std::string& start = "start") {
  try {
    tuning::Log log(path, key, start);
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_argument);
    return error.message;
  }
  return "";
}

}  // namespace

TEST_CASE("any text is read back from JSON as it was", "[tune][json]") {
  std::string all;
  for (int c = 0; c < 256; ++c) all += char(c);
  const std::string line = tuning::JsonLine().text("a \"key\"", all).number("n", -0.1 - 0.2).text("empty", "").str();
  CHECK(line.find('\n') == std::string::npos);
  const auto json = tuning::parse_json(line);
  REQUIRE(json);
  CHECK(tuning::text_of(*json, "a \"key\"") == all);
  CHECK(tuning::number_of(*json, "n") == -0.1 - 0.2);
  CHECK(json->count("empty") == 1);
  CHECK(tuning::text_of(*json, "no such") == "");
}

TEST_CASE("JSON that others write is read, and what is none is not", "[tune][json]") {
  const auto json = tuning::parse_json(" { \"a\\/b\" : \"\\u0041\\t\" ,\"c\":0 } ");
  REQUIRE(json);
  CHECK(*json == tuning::Json{{"a/b", "A\t"}, {"c", "0"}});
  CHECK(tuning::parse_json("{}"));
  for (const char* text : {"", "{", "}", "{\"a\"}", "{\"a\": }", "{\"a\": 1", "{\"a\": 1,}", "{\"a\": 1} x",
                           "{\"a\": \"", "{\"a\": \"\\", "{\"a\": \"\\u00", "{\"a\": \"\\q\"}", "{\"a\": inf}",
                           "{\"a\": [1]}", "{\"a\": 1, \"a\": 2}", "{\"a\": \"\n\"}", "[1]"}) {
    INFO(text);
    CHECK_FALSE(tuning::parse_json(text));
  }
}

TEST_CASE("a log gives back what was added to it", "[tune][log]") {
  const Folder folder;
  const std::string path = folder / "log.jsonl";
  tuning::Record refused = record("workers(2)\n\"odd\"\n", 0);
  refused.outcome = Outcome::refused, refused.why = "it may not\nbe";
  {
    tuning::Log log(path, key, "start");
    CHECK(log.records().empty());
    log.add(record("dynamic_batch()\n", 0.75));
    const std::string one = read(path);  // what is added is in the file at once
    log.add(refused);
    CHECK(read(path).size() > one.size());
    CHECK(one.ends_with("}\n"));
  }

  const tuning::Log again(path, key, "start");
  REQUIRE(again.records().size() == 2);
  const tuning::Record* const first = again.find("dynamic_batch()\n");
  REQUIRE(first);
  CHECK(first->from_log);
  CHECK(first->outcome == Outcome::measured);
  CHECK(first->seconds == 2.5e-4);
  CHECK(first->ratio == 0.75);
  CHECK(first->rounds == 7);
  REQUIRE(again.find(refused.schedule));
  CHECK(again.find(refused.schedule)->outcome == Outcome::refused);
  CHECK(again.find(refused.schedule)->why == refused.why);
  CHECK_FALSE(again.find("dynamic_batch()"));
}

TEST_CASE("a last line that was cut off at any place is taken away", "[tune][log]") {
  const Folder folder;
  const std::string path = folder / "log.jsonl";
  { tuning::Log(path, key, "start").add(record("first", 0.5)); }
  const std::string whole = read(path);
  { tuning::Log(path, key, "start").add(record("second", 0.25)); }
  const std::string both = read(path);
  for (std::size_t size = whole.size(); size < both.size(); ++size) {
    write(path, both.substr(0, size));
    tuning::Log log(path, key, "start");
    REQUIRE(log.records().size() == 1);
    CHECK(read(path) == whole);
    log.add(record("second", 0.25));
    CHECK(read(path) == both);
  }
  write(path, both.substr(0, 10));  // the first line
  CHECK(tuning::Log(path, key, "start").records().empty());
  CHECK(read(path) == whole.substr(0, whole.find('\n') + 1));
}

TEST_CASE("a log of something else is refused, and says of what it is", "[tune][log][refusal]") {
  const Folder folder;
  const std::string path = folder / "log.jsonl";
  { tuning::Log(path, key, "start").add(record("first", 0.5)); }
  CHECK(refusal(path, {"model 2", key.machine, key.shapes, key.threads}) ==
        "tuning log '" + path +
            "': it is of another model (model 1, and not model 2); give another path, or remove it");
  CHECK_THAT(refusal(path, {key.model, "m", key.shapes, key.threads}),
             Contains("it is of another machine (machine, and not m)"));
  CHECK_THAT(refusal(path, {key.model, key.machine, "s", key.threads}),
             Contains("it is of inputs of other shapes (shapes, and not s)"));
  CHECK_THAT(refusal(path, {key.model, key.machine, key.shapes, "1 thread"}),
             Contains("it is of other threads (2 threads, and not 1 thread)"));
  CHECK_THAT(refusal(path, key, "other"), Contains("it is of another default (start, and not other)"));
  for (const char* text : {"do not forget\n", "do not forget", "\n", "a\nb"}) {
    write(folder / "notes", text);
    CHECK_THAT(refusal(folder / "notes", key), Contains("it is no log of a tuner"));
    CHECK(read(folder / "notes") == text);
  }
  CHECK_THAT(refusal(folder / "no/such/folder", key), Contains("it cannot be written to"));
}

TEST_CASE("a damaged line of a log is skipped, and counted, and those behind it are read", "[tune][log]") {
  const Folder folder;
  const std::string path = folder / "log.jsonl";
  {
    tuning::Log log(path, key, "start");
    CHECK(log.skipped() == "");
    log.add(record("first", 0.5));
  }
  const std::string whole = read(path), line = whole.substr(whole.find('\n') + 1);
  write(path, whole + line.substr(0, 20) + "\n" + line);
  {
    tuning::Log log(path, key, "start");
    CHECK(log.records().size() == 2);
    CHECK(log.skipped() ==
          "tuning log '" + path + "': line 3 is no candidate, and was skipped; what stood there is tried again");
    log.add(record("second", 0.25));
  }
  write(path, read(path) + "\n" + whole);
  const tuning::Log log(path, key, "start");
  CHECK(log.records().size() == 4);
  CHECK(log.find("second"));
  CHECK(log.skipped() == "tuning log '" + path +
                             "': 3 lines are no candidates, line 3 the first of them, and were skipped; what stood "
                             "there is tried again");
}

TEST_CASE("a candidate with numbers that nothing measures is none", "[tune][log]") {
  const Folder folder;
  const std::string path = folder / "log.jsonl";
  { tuning::Log(path, key, "start").add(record("first", 0.5)); }
  const std::string whole = read(path), rounds = "\"rounds\": 7", ratio = "\"ratio\": 0.5";
  const auto with = [&](const std::string& old, const std::string& other) {
    std::string text = whole;
    REQUIRE(text.find(old) != std::string::npos);
    text.replace(text.find(old), old.size(), other);
    write(path, text);
  };
  for (const char* number : {"1e300", "-1", "4e9", "\"nan\"", "\"inf\""}) {
    with(rounds, std::string("\"rounds\": ") + number);
    CHECK_THAT(tuning::Log(path, key, "start").skipped(), Contains("line 2 is no candidate"));
  }
  for (const char* number : {"0", "-0.5", "\"nan\"", "\"inf\""}) {
    with(ratio, std::string("\"ratio\": ") + number);
    CHECK_THAT(tuning::Log(path, key, "start").skipped(), Contains("line 2 is no candidate"));
  }
  with(rounds, "\"rounds\": 8");
  CHECK(tuning::Log(path, key, "start").skipped() == "");
}

TEST_CASE("a log is a regular file, and what is none is not opened", "[tune][log][refusal]") {
  const Folder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);  // whose opening waits for a reader
  CHECK(refusal(pipe, key) == "tuning log '" + pipe + "': it is no regular file; give another path");
  CHECK_THAT(refusal("/dev/null", key), Contains("it is no regular file"));
  CHECK_THAT(refusal(folder / ".", key), Contains("it cannot be written to"));
  CHECK_FALSE(tuning::detail::read_all(pipe));
}

TEST_CASE("a log that another search is writing is refused", "[tune][log][refusal]") {
  const Folder folder;
  const std::string path = folder / "log.jsonl";
  {
    const tuning::Log log(path, key, "start");
    CHECK(refusal(path, key) ==
          "tuning log '" + path + "': another search is writing it; wait for that one, or give another path");
  }
  CHECK(refusal(path, key) == "");
}

TEST_CASE("what the cache cannot keep leaves no file", "[tune][cache]") {
  const Folder folder;
  const tuning::Cache cache(folder / "cache", key, "space");
  cache.keep({"tile_rows(2)\n", 0.5, 0.01});
  const std::filesystem::path file = std::filesystem::directory_iterator(folder / "cache")->path();
  std::filesystem::remove(file);
  std::filesystem::create_directories(file / "in the way");
  CHECK_THROWS_WITH(cache.keep({"tile_rows(2)\n", 0.5, 0.01}), Contains("no file can be written there"));
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache")) left.push_back(entry.path());
  CHECK(left == std::vector{file});
}

TEST_CASE("the cache gives what was kept, and nothing for anything else", "[tune][cache]") {
  const Folder folder;
  const std::string path = folder / "cache";
  const tuning::Cache cache(path, key, "space");
  CHECK_FALSE(cache.find({}));
  cache.keep({"tile_rows(2)\n", 0.5, 0.01});
  const auto found = cache.find({});
  REQUIRE(found);
  CHECK(found->schedule == "tile_rows(2)\n");
  CHECK(found->ratio == 0.5);
  CHECK(found->noise == 0.01);
  cache.keep({"tile_rows(3)\n", 0.25, 0});
  CHECK(cache.find({})->schedule == "tile_rows(3)\n");

  CHECK_FALSE(tuning::Cache(path, {"model 2", key.machine, key.shapes, key.threads}, "space").find({}));
  CHECK_FALSE(tuning::Cache(path, {key.model, "m", key.shapes, key.threads}, "space").find({}));
  CHECK_FALSE(tuning::Cache(path, {key.model, key.machine, "s", key.threads}, "space").find({}));
  CHECK_FALSE(tuning::Cache(path, {key.model, key.machine, key.shapes, "1 thread"}, "space").find({}));
  CHECK_FALSE(tuning::Cache(path, key, "another space").find({}));
  CHECK_FALSE(tuning::Cache("", key, "space").find({}));
}

TEST_CASE("a result of a shorter search is not taken for a longer one", "[tune][cache]") {
  const Folder folder;
  const tuning::Cache cache(folder / "cache", key, "space");
  const double whole = tuning::Reach::unlimited;
  cache.keep({"tile_rows(2)\n", 0.5, 0.01, {60.1, 100}});
  CHECK(cache.find({60.1, 100}));
  CHECK(cache.find({5, 7}));
  CHECK_FALSE(cache.find({60.2, 100}));
  CHECK_FALSE(cache.find({60.1, 101}));
  CHECK_FALSE(cache.find({whole, whole}));
  CHECK(cache.find({0, whole}));  // no search at all
  cache.keep({"tile_rows(3)\n", 0.5, 0.01});
  REQUIRE(cache.find({whole, whole}));
  CHECK(cache.find({whole, whole})->schedule == "tile_rows(3)\n");
}

TEST_CASE("a file of the cache that does not say how far was searched counts as none", "[tune][cache]") {
  const Folder folder;
  const tuning::Cache cache(folder / "cache", key, "space");
  cache.keep({"tile_rows(2)\n", 0.5, 0.01});
  const std::string file = std::filesystem::directory_iterator(folder / "cache")->path().string(), text = read(file);
  const auto limits = text.find(", \"seconds\"");
  REQUIRE(limits != std::string::npos);
  write(file, text.substr(0, limits) + "}\n");
  CHECK_FALSE(cache.find({0, 0}));
}

TEST_CASE("a file of the cache with numbers that nothing measures counts as none", "[tune][cache]") {
  const Folder folder;
  const tuning::Cache cache(folder / "cache", key, "space");
  cache.keep({"tile_rows(2)\n", 0.5, 0.25});
  const std::string file = std::filesystem::directory_iterator(folder / "cache")->path().string(), text = read(file);
  const auto with = [&](const std::string& number, const std::string& instead) {
    const auto at = text.find(number);
    REQUIRE(at != std::string::npos);
    write(file, text.substr(0, at) + instead + text.substr(at + number.size()));
    return bool(cache.find({}));
  };
  CHECK(with("\"ratio\": 0.5", "\"ratio\": 0.75"));
  for (const char* ratio : {"0", "-5", "1e400", "\"abc\""})
    CHECK_FALSE(with("\"ratio\": 0.5", std::string("\"ratio\": ") + ratio));
  for (const char* noise : {"-1", "1e400"}) CHECK_FALSE(with("\"noise\": 0.25", std::string("\"noise\": ") + noise));
}

TEST_CASE("a file of the cache that is not whole, or of something else, counts as none", "[tune][cache]") {
  const Folder folder;
  const std::string path = folder / "cache";
  const tuning::Cache cache(path, key, "space"), other(path, key, "other");
  cache.keep({"tile_rows(2)\n", 0.5, 0.01});
  const std::string file = std::filesystem::directory_iterator(path)->path().string();
  const std::string whole = read(file);
  for (const std::size_t size : {std::size_t(0), whole.size() / 2, whole.size() - 1}) {
    write(file, whole.substr(0, size));
    CHECK_FALSE(cache.find({}));
  }
  other.keep({"tile_rows(3)\n", 0.5, 0.01});
  for (const auto& entry : std::filesystem::directory_iterator(path))  // as if two keys had one hash
    if (entry.path().string() != file)
      std::filesystem::copy_file(entry, file, std::filesystem::copy_options::overwrite_existing);
  CHECK_FALSE(cache.find({}));
  CHECK_THROWS_WITH(tuning::Cache(folder / "no/such", key, "").keep({}), Contains("no file can be written there"));
}

TEST_CASE("a space's points are all its schedules, each once, the start first", "[tune]") {
  tuning::Space space = rows({2, 4});
  space.add(tuning::Axis("workers").numbers({1, 2}, &Schedule::workers));  // 1 is the start's own
  const auto points = space.points(Schedule::standard().workers(1));
  REQUIRE(points.size() == 6);
  CHECK(points[0].schedule == Schedule::standard().workers(1));
  CHECK(points[1].schedule == Schedule::standard().workers(2));
  CHECK(points[5].schedule == Schedule::standard().tile_rows(4).workers(2));
  CHECK(space.points(Schedule{}, 3).size() == 3);
  CHECK(space.text() == "rows: as it is, 2, 4; workers: as it is, 1, 2");
  CHECK(tuning::are_neighbours(points[0], points[1]));
  CHECK_FALSE(tuning::are_neighbours(points[0], points[5]));
  CHECK(tuning::Space().points(Schedule{}).size() == 1);
}

TEST_CASE("the space of a model has what the model has", "[tune]") {
  const auto names = [](const ra::Graph& graph, int workers) {
    return tuning::default_space(graph, Target::interpreter(), workers).text();
  };
  const auto lstm = tree_lstm(4);
  CHECK_THAT(names(lstm.graph(), 1), !Contains("workers") && !Contains("sweeps"));
  CHECK_THAT(names(tree_lstm(512).graph(), 1), Contains("sweeps: as it is, there and back, forward"));
  CHECK_THAT(names(lstm.graph(), 1), Contains("a version for each branch") && Contains("unrolled") && !Contains("cut"));
  CHECK_THAT(names(lstm.graph(), 4), Contains("workers: as it is, 1, 2, in 2 groups, in one group, a group each;") &&
                                         Contains("cut at leaf_c"));
  CHECK_THAT(names(lstm.graph(), 1),
             Contains("equal subtrees once") && Contains("levels as they are, levels of 8 nodes"));
  CHECK_THAT(names(lstm.graph(), 1), Contains("whole calls, pieces of 256"));
  ra::Graph dag = lstm.graph();
  dag.structure = ra::StructureKind::dag;  // whose calls the standard schedule leaves whole
  CHECK_THAT(names(dag, 1), Contains("pieces of 256") && !Contains("whole calls"));
  CHECK_THAT(names(tree_lstm(64).graph(), 1), !Contains("equal subtrees"));  // the standard schedule has them once
  for (const tuning::Point& point : tuning::default_space(lstm.graph(), Target{}, 2).points(Schedule::standard()))
    CHECK(point.schedule.exact == false);  // what a model computes is not the tuner's to change
}

TEST_CASE("a median knows how sure it is", "[tune]") {
  const auto odd = tuning::Median::of({3, 1, 2});
  CHECK(odd.value == 2);
  CHECK(odd.lower == 1);
  CHECK(odd.upper == 3);
  CHECK(tuning::Median::of({1, 2, 3, 4}).value == 2.5);
  std::vector<double> many;
  for (int i = 1; i <= 31; ++i) many.push_back(i);
  const auto median = tuning::Median::of(many);  // the 10th and the 22nd, by the binomial distribution
  CHECK(median.value == 16);
  CHECK(median.lower == 10);
  CHECK(median.upper == 22);
}
