// expect: weights are bound from float or double values: convert them first
#include "cortex/runtime/functor.hpp"
#include "prelude.hpp"

using Set = cortex::structure::Accessors<std::remove_const_t<decltype(word)>>;

void bind(cortex::Functor<Word, Set>& model, const std::vector<std::int32_t>& values) { model.bind("Emb", values); }
