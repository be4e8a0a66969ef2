// Lesson 9: weights from PyTorch, and the models that come with Cortex. An LSTM's state dict is read from a file, bound
// to `cortex::models::lstm`, and what that gives is compared with what torch.nn.LSTM gave.
//
//   09_pytorch_weights [file.safetensors]     without a file: data/lstm.safetensors
//
// In Python, such a file is written by
//
//   lstm = torch.nn.LSTM(5, 7)
//   safetensors.torch.save_file({"Emb": embedding, **lstm.state_dict()}, "lstm.safetensors")
//
// This one holds some sequences too, and the results "expected.h" and "expected.c" for each of their steps.
#include <cmath>
#include <cortex/cortex.hpp>
#include <cortex/models/gru.hpp>  // the zoo: a header a model. What it holds is written as lessons 1 to 8 write models
#include <cortex/models/lstm.hpp>
#include <cortex/weights/safetensors.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <vector>

// A step of a sequence knows the one before it; a sequence's root is its last step.
struct Step {
  int word = 0;
  const Step* before = nullptr;
};
constexpr auto before = cortex::optional_child<&Step::before>;
constexpr auto word = cortex::field<&Step::word>;

// The larger of two differences. NaN, which std::fmax would pass over, stays.
double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

int main(int argc, char** argv) try {
  const std::filesystem::path data = std::filesystem::path(__FILE__).parent_path() / "data";
  const auto file = cortex::SafetensorsFile::open(argc > 1 ? argv[1] : data / "lstm.safetensors");
  for (const std::string& name : file.names()) {
    const cortex::TensorView& tensor = file.tensor(name);
    std::printf("%s %s [", name.c_str(), std::string(to_string(tensor.type)).c_str());
    for (const std::int64_t extent : tensor.shape) std::printf(" %lld", static_cast<long long>(extent));
    std::printf(" ]\n");
  }

  // A model of the zoo takes accessors of your nodes, and sizes; it gives the program and handles of its results.
  const std::int64_t input = file.tensor("Emb").shape[1], hidden = file.tensor("weight_hh_l0").shape[1];
  const auto lstm = cortex::models::lstm<Step>(word, before, {.input = input, .hidden = hidden});
  auto model = cortex::compile(lstm.program);

  // Every input is bound to the tensor of its name, all or none. The zoo's sequence models have the names of torch.nn,
  // and its order of gates: torch's [4 hidden, input] is [4, hidden, input] here, the same numbers.
  cortex::bind(model, file);

  // The sequences, as a file can hold them: for each step its word and the number of the step before it, or -1.
  const auto words = file.read<int>("word"), children = file.read<int>("children"), ends = file.read<int>("roots");
  std::vector<Step> steps(words.size());
  for (std::size_t i = 0; i < steps.size(); ++i)
    steps[i] = {words[i], children[i] < 0 ? nullptr : &steps[std::size_t(children[i])]};
  std::vector<const Step*> roots;
  for (const int end : ends) roots.push_back(&steps[std::size_t(end)]);

  const auto result = model(roots);
  const auto expected_h = file.read<float>("expected.h"), expected_c = file.read<float>("expected.c");
  double difference = 0;
  const auto compare = [&](std::span<const float> values, const std::vector<float>& expected, std::size_t step) {
    for (std::size_t i = 0; i < values.size(); ++i)
      difference = larger(difference, std::abs(values[i] - expected[step * values.size() + i]));
  };
  for (std::size_t i = 0; i < steps.size(); ++i)
    compare(result.node(&steps[i], lstm.h), expected_h, i), compare(result.node(&steps[i], lstm.c), expected_c, i);
  std::printf("%zu sequences of %zu steps in all, largest difference from PyTorch: %.1e\n", roots.size(), steps.size(),
              difference);

  // The same LSTM as a part of a model of your own, in which names have a prefix: as a cell it adds its recursion to
  // your model and gives its states, which others may read. Names that differ from the file's are bound by a map.
  const cortex::Dim V{"vocabulary"}, D{"input", input}, H{"hidden", hidden};
  cortex::Model<Step> mine("mine", cortex::sequence);
  auto Emb = mine.input<float>("Emb", V, D);
  auto x = mine.compute("x", D, [&](auto n, auto i) { return Emb(word(n), i); });
  auto [h, c] = cortex::models::lstm_cell(mine, x, before, {.input = D, .hidden = H, .prefix = "encoder."});
  auto mean = mine.readout<float>("mean", H, [&](auto r, auto i) {
    return sum(cortex::nodes(r), [&](auto n) { return h(n, i); }) / num_children(cortex::nodes(r));
  });
  auto encoder = cortex::compile(mine.program(mean));
  cortex::TensorNames names;
  for (const char* name : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"})
    names[std::string("encoder.") + name] = name;
  cortex::bind(encoder, file, names);

  const auto means = encoder(roots);
  for (std::size_t r = 0; r < roots.size(); ++r) {
    std::vector<float> expected(std::size_t(hidden), 0.0F);
    int count = 0;
    for (const Step* s = roots[r]; s; s = s->before, ++count)
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] += expected_h[std::size_t(s - steps.data()) * expected.size() + i];
    for (float& value : expected) value /= float(count);
    compare(means[r], expected, 0);
  }

  // A file that does not fit is refused, before anything is bound.
  auto gru = cortex::compile(cortex::models::gru<Step>(word, before, {.input = input, .hidden = hidden}).program);
  try {
    cortex::bind(gru, file);
    return 1;
  } catch (const cortex::Error& error) {
    std::printf("refused: %s\n", error.message.c_str());
  }
  return difference < 2e-6 ? 0 : 1;
} catch (const cortex::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
