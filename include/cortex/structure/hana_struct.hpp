// Accessors by name, for node types adapted with Boost.Hana. Only those who use it include it (and pay for Hana).
//
//   struct Word { int id; const Word* left; const Word* right; };
//   BOOST_HANA_ADAPT_STRUCT(Word, id, left, right);            // at global scope
//   constexpr auto left = cortex::child_named<Word, "left">;
//   constexpr auto word = cortex::field_named<Word, "id">;
#pragma once

#include <array>
#include <boost/hana/accessors.hpp>
#include <boost/hana/adapt_struct.hpp>
#include <boost/hana/at.hpp>
#include <boost/hana/concept/struct.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/string.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cortex/structure/accessors.hpp"

namespace cortex::structure {

/// A string literal as template argument.
template <std::size_t N>
struct FixedString {
  char text[N];
  consteval FixedString(const char (&literal)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
  }
  constexpr std::string_view view() const { return {text, N - 1}; }
};

/// The position of the member of that name among the Hana members of S, or -1.
template <class S>
constexpr int hana_position(std::string_view name) {
  if constexpr (!boost::hana::Struct<S>::value) {
    return -1;
  } else {
    return boost::hana::unpack(boost::hana::accessors<S>(), [&](auto... members) {
      int at = 0, found = -1;
      ((found = name == std::string_view(boost::hana::first(members).c_str()) ? at : found, ++at), ...);
      return found;
    });
  }
}

/// The step of a path that reads the Hana member `text` of S.
template <class S, FixedString text>
struct HanaMember {
  static_assert(
      boost::hana::Struct<S>::value,
      "this node type is not adapted: write BOOST_HANA_ADAPT_STRUCT(Type, member, ...) at global scope, or use "
      "cortex::child<&Type::member> and its kin");
  static_assert(!boost::hana::Struct<S>::value || hana_position<S>(text.view()) >= 0,
                "this node type has no Hana member of that name: see its BOOST_HANA_ADAPT_STRUCT");

  static constexpr std::string_view name() { return text.view(); }

  constexpr decltype(auto) operator()(const S& node) const {
    constexpr int position = hana_position<S>(text.view());
    return boost::hana::second(boost::hana::at_c<std::size_t(position)>(boost::hana::accessors<S>()))(node);
  }
};

}  // namespace cortex::structure

namespace cortex {

/// `child`, `optional_child`, `children` and `field`, for the Hana members so named of the struct S. `children_named`
/// takes one or more names. A name that S lacks is refused at compile time.
template <class S, structure::FixedString name>
inline constexpr structure::Child<structure::HanaMember<S, name>{}> child_named{};
template <class S, structure::FixedString name>
inline constexpr structure::OptionalChild<structure::HanaMember<S, name>{}> optional_child_named{};
template <class S, structure::FixedString... names>
inline constexpr structure::Children<structure::HanaMember<S, names>{}...> children_named{};
template <class S, structure::FixedString name>
inline constexpr structure::Field<structure::HanaMember<S, name>{}> field_named{};

}  // namespace cortex
