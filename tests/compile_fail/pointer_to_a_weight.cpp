// expect: the values of a weight are bound from a container of floats or doubles side by side, from rows of these, or from a pointer and their number
#include "cortex/runtime/functor.hpp"
#include "prelude.hpp"

using Set = cortex::structure::Accessors<std::remove_const_t<decltype(word)>>;

void bind(cortex::Functor<Word, Set>& model, const float* values) { model.bind("Emb", values); }
