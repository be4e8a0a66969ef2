// What the linearizer says about structures that it refuses. All cold: out of line, so that the walk stays small.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/names.hpp"
#include "cortex/structure/kind.hpp"
#include "cortex/structure/partition.hpp"
#include "cortex/structure/workspace.hpp"

namespace cortex::structure::fail {

/// "node 5 of the walk (reached from root 1)": nodes are counted in breadth-first order from 0, all roots first.
inline std::string at_node(const WalkState& walk, std::int32_t place) {
  std::int32_t root = place;
  while (walk.parent.data()[root] != 0) root = walk.parent.data()[root];
  return "node " + std::to_string(place - 1) + " of the walk (reached from root " + std::to_string(root - 1) + ")";
}

/// Throws an error that is about the node at a place.
[[noreturn]] inline void refuse(Code code, const WalkState& walk, std::int32_t place, std::string message) {
  throw Error(code, std::move(message), walk.node.data()[place]);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void null_root(std::int64_t index) {
  throw Error(Code::invalid_structure, "root " + std::to_string(index) +
                                           " is null: every root must be a node; leave it out of the list of roots");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void null_child(const WalkState& walk, std::int32_t place,
                                                              std::string_view name) {
  refuse(Code::invalid_structure, walk, place,
         at_node(walk, place) + " has no " + in_quotes(name) +
             " although it has another child: an internal node has all its named children, a leaf has neither one "
             "nor any other; set " +
             in_quotes(name) + ", or read it through cortex::optional_child");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void null_element(const WalkState& walk, std::int32_t place,
                                                                std::string_view name, std::int64_t element) {
  refuse(Code::invalid_structure, walk, place,
         "element " + std::to_string(element) + " of " + in_quotes(name) + " is null at " + at_node(walk, place) +
             ": a container holds only children that exist; remove the element, or, where places may stay "
             "empty, name each place: of an array of fixed size cortex::optional_child<&Node::kids, 0>, of members "
             "cortex::children<first, second>");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void root_index(std::int64_t root, std::string_view index,
                                                              std::size_t size) {
  throw Error(Code::out_of_range, "root " + std::to_string(root) + " is index " + std::string(index) +
                                      ", but the arena holds " + std::to_string(size) +
                                      " nodes; pass the arena that the roots were made for");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void root_outside(std::int64_t root, std::size_t size) {
  throw Error(Code::out_of_range, "root " + std::to_string(root) + " is a node outside of the arena, which holds " +
                                      std::to_string(size) +
                                      " nodes: its links would be taken for indices of others; pass the arena that it "
                                      "stands in");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void link_index(const WalkState& walk, std::int32_t place,
                                                              std::string_view name, std::string_view index,
                                                              std::size_t size) {
  refuse(Code::out_of_range, walk, place,
         in_quotes(name) + " of " + at_node(walk, place) + " is index " + std::string(index) +
             ", but the arena holds " + std::to_string(size) +
             " nodes, counted from 0; an optional child that is absent is a negative index, or the greatest value of "
             "an unsigned type");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void too_many_visits(const WalkState& walk) {
  throw Error(Code::out_of_range,
              "the roots reach more than " + std::to_string(walk.max_visits) +
                  " nodes (counted once per link), the most that this workspace numbers in one call; "
                  "pass fewer roots at a time");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void too_many_members(const WalkState& walk) {
  throw Error(Code::out_of_range, "the roots have more than " + std::to_string(walk.max_visits) +
                                      " members (a node counts once for each root that reaches it), the most that "
                                      "this workspace lists in one call; pass fewer roots at a time");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void no_room_for_members(const Error& why, std::int64_t members) {
  throw Error(why.code,
              why.message + "; " + std::to_string(members) +
                  " members of roots are listed so far, and a node counts once for each root that reaches it");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void too_many_parts(std::int32_t heights, std::int32_t parts) {
  throw Error(Code::out_of_range, "the nodes stand " + std::to_string(heights) + " levels deep, each of " +
                                      std::to_string(parts) +
                                      " parts by the branches that are specialized, and parts have 32-bit numbers; "
                                      "specialize fewer branches, or pass structures that are less deep");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void too_many_children(const WalkState& walk, std::int32_t place,
                                                                     std::int64_t count, const Structure& structure,
                                                                     std::span<const std::string_view> names) {
  std::string through;
  for (std::string_view name : names) through += (through.empty() ? "" : ", ") + in_quotes(name);
  // Those of several links are counted up to the first that is too many.
  const bool exact = !walk.cut_short && (walk.num_containers == 0 || names.size() == 1);
  const std::string what = at_node(walk, place) + " has " + (exact ? "" : "at least ") + std::to_string(count) +
                           " children (through " + through + ")";
  if (structure.kind == Kind::sequence)
    refuse(Code::invalid_structure, walk, place,
           what +
               ", but the model is declared for a sequence, in which a node has at most "
               "one; declare it for cortex::tree or cortex::dag");
  refuse(Code::invalid_structure, walk, place,
         what + ", but the model is declared for at most " + std::to_string(structure.max_children) +
             "; raise the bound given to with_max_children, or split the node");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void endless_list(const WalkState& walk, std::int32_t place,
                                                                std::string_view name) {
  refuse(Code::invalid_structure, walk, place,
         in_quotes(name) + " of " + at_node(walk, place) +
             " goes round: the list of children comes back to where it was and has no end");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void cycle(const WalkState& walk, std::int32_t place, std::int64_t length,
                                                         std::string_view name) {
  const std::string again =
      length == 1 ? "its own child" : "its own descendant, " + std::to_string(length) + " links away";
  refuse(Code::invalid_structure, walk, place,
         "a cycle: " + at_node(walk, place) + " is " + again + ", and the link back to it is " + in_quotes(name) +
             "; a recursion over it would not end; remove the link that leads back");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void shared_child(const WalkState& walk, std::int32_t place, Kind kind,
                                                                std::int32_t parent_a, std::string_view name_a,
                                                                std::int32_t parent_b, std::string_view name_b) {
  const std::string where =
      parent_a == parent_b
          ? "twice a child of " + at_node(walk, parent_a) + ", by " + in_quotes(name_a) + " and by " + in_quotes(name_b)
          : "a child of " + at_node(walk, parent_a) + " by " + in_quotes(name_a) + " and of " +
                at_node(walk, parent_b) + " by " + in_quotes(name_b);
  refuse(Code::invalid_structure, walk, place,
         "a shared child: " + at_node(walk, place) + " is " + where + ", but the model is declared for a " +
             to_string(kind) +
             ", in which a node is the child of one parent, once; copy the node, or "
             "declare the model for cortex::dag");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void unreachable_field(const WalkState& walk, std::int32_t place,
                                                                     std::string_view name) {
  refuse(Code::invalid_structure, walk, place,
         "field " + in_quotes(name) + " of " + at_node(walk, place) +
             " lies behind a null pointer; set the pointer, or read the field in a side of a branch that no such node "
             "takes");
}

/// `element` is -1 for scalar fields.
inline std::string field_value(const WalkState& walk, std::int32_t place, std::string_view name, int element,
                               const std::string& value) {
  const std::string which = element < 0 ? "" : "[" + std::to_string(element) + "]";
  return "field " + in_quotes(name) + which + " of " + at_node(walk, place) + " is " + value;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void field_limit(const WalkState& walk, std::int32_t place,
                                                               std::string_view name, int element,
                                                               const std::string& value, const FieldCheck& check) {
  const std::string table = check.table ? " '" + std::string(check.table) + "'" : "";
  refuse(
      Code::out_of_range, walk, place,
      field_value(walk, place, name, element, value) + ", but it indexes the table" + table + ", which has " +
          std::to_string(check.limit) + " rows: valid values are 0 to " + std::to_string(check.limit - 1) +
          "; map unknown values to a row of their own, and where some nodes have no value read another row there, as "
          "in Emb(select(is_leaf(n), word(n), 0), i)");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void field_width(const WalkState& walk, std::int32_t place,
                                                               std::string_view name, int element,
                                                               const std::string& value) {
  refuse(Code::out_of_range, walk, place,
         field_value(walk, place, name, element, value) +
             ", which does not fit the 32 bits that fields have in generated code; renumber the "
             "values");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void field_length(const WalkState& walk, std::int32_t place,
                                                                std::string_view name, std::size_t length,
                                                                const FieldCheck& check) {
  refuse(Code::invalid_structure, walk, place,
         "field " + in_quotes(name) + " of " + at_node(walk, place) + " has " + std::to_string(length) +
             " numbers, but the model declares " + std::to_string(check.components) +
             "; give as many to each node at which it is read");
}

[[noreturn, gnu::cold, gnu::noinline]] inline void no_case(const WalkState& walk, std::int32_t place,
                                                           const Selector& selector, std::int64_t value) {
  std::string cases;
  constexpr std::size_t named = 16;
  for (std::size_t c = 0; c < std::min(named, selector.values.size()); ++c)
    cases += (cases.empty() ? "" : ", ") + std::to_string(selector.values[c]);
  if (selector.values.size() > named) cases += " and " + std::to_string(selector.values.size() - named) + " more";
  refuse(Code::out_of_range, walk, place,
         at_node(walk, place) + " has kind " + std::to_string(value) + ", for which switch '" + selector.name +
             "' has no case; it has cases for " + cases + "; give the node one of these, or the switch an otherwise");
}

}  // namespace cortex::structure::fail
