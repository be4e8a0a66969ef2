// A server's model: a program with LLVM writes its code to a file ("write FILE"), one without is linked with it. Both
// print the state of a root.
#include <cortex/cortex.hpp>
#include <cortex/models/tree_lstm.hpp>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <vector>

struct Phrase {
  int word;
  std::vector<const Phrase*> parts;
};

int main(int argc, char** argv) try {
  const auto lstm = cortex::models::tree_lstm<Phrase>(cortex::field<&Phrase::word>, cortex::children<&Phrase::parts>,
                                                      {.vocabulary = 3, .input = 16, .hidden = 48});
  auto model = cortex::compile(lstm.program, cortex::Schedule::standard().workers(2),
                               cortex::CompileOptions{}.on(cortex::Target::x86_64(2)));
  std::size_t number = 0;
  for (const auto& weight : model.executable().weights) {
    std::size_t count = 1;
    for (const cortex::Dim& dim : weight.dims)
      count *= dim.kind() == cortex::DimKind::open ? 3 : std::size_t(dim.extent());
    std::vector<float> values(count);
    for (float& value : values) value = float(int(number++ * 7919 % 201) - 100) / 400;
    model.bind(weight.name, values);
  }
  const Phrase a{0, {}}, b{1, {}}, c{2, {&a, &b}}, root{1, {&c}};
  for (const float value : model(root)[0]) std::printf("%a\n", double(value));
  if (argc == 3 && std::string_view(argv[1]) == "write") model.write_code(argv[2]);
} catch (const cortex::Error& error) {
  std::puts(error.message.c_str());
  return 1;
}
