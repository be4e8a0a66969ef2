// Fields that some sides of branches read: random bodies of branches and switches, one inside the other, on trees whose
// nodes have no more data than the side that each takes reads. What none reads is missing, or past every table.
#include <catch2/catch.hpp>
#include <deque>
#include <optional>

#include "support/compile.hpp"
#include "support/differential.hpp"
#include "support/random_schedules.hpp"
#include "support/wanted_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Fact {
  int number = 0;
};
struct Event {
  int kind = 0;
  std::vector<float> row;
  const Fact* sub = nullptr;
  const Fact* word = nullptr;
  std::vector<const Event*> kids;
};

constexpr auto kids = cortex::children<&Event::kids>;
constexpr auto kind = cortex::field<&Event::kind>;
constexpr auto row = cortex::field<&Event::row>;
constexpr auto sub = cortex::field<&Event::sub, &Fact::number>;
constexpr auto word = cortex::field<&Event::word, &Fact::number>;
using EventSet = structure::Accessors<structure::Children<&Event::kids>, structure::Field<&Event::kind>,
                                      structure::Field<&Event::row>, structure::Field<&Event::sub, &Fact::number>,
                                      structure::Field<&Event::word, &Fact::number>>;
using EventFunctor = Functor<Event, EventSet, float>;
enum Number { kind_, row_, sub_, word_ };  // of the fields in the graph

constexpr int width = 3, num_kinds = 4, num_subs = 3;

/// What a random body does at a node: an operator that reads some fields, or a choice.
struct Side {
  static constexpr int by_leaf = -1, by_nothing = -2;
  unsigned reads = 0;       // bits of fields
  int by = by_nothing;      // a field, that of words for its remainder by 3
  std::vector<int> values;  // by which its sides are taken, the last one by all others, too
  std::vector<Side> sides;
};

GraphCase graph_of_events(std::uint64_t seed) {
  Model<Event> all("events", cortex::tree);
  Dim one{"one", 1}, F{"width", width};
  auto h = all.placeholder<float>("h", one);
  auto table = all.input<float>("table", Dim{"rows"});
  all.compute("kind", one, [&](auto n, auto) { return table(kind(n)); });  // accessors have numbers in this order
  auto numbers = all.field("row", row, F);
  auto body = all.compute("body", one, [&](auto n, auto i) {
    return numbers(n, 0) + table(sub(n)) + table(word(n)) + sum(kids(n), [&](auto k) { return h(k, i); });
  });
  const ra::Graph made = all.recursion_op(h, body).graph();
  GraphCase result;
  result.graph.containers = made.containers;
  result.graph.fields = made.fields;
  result.graph.structure = ra::StructureKind::tree;
  result.graph.name = "events_" + std::to_string(seed);
  return result;
}

class RandomBody : public GraphCase {
 public:
  explicit RandomBody(std::uint64_t seed) : GraphCase(graph_of_events(seed)), random_(seed) {
    state_ = add(ra::OpKind::placeholder, "h", {F_}).buffer;
    if (random_.chance(0.3)) row_of_ = add(ra::OpKind::field, "row", {F_}).buffer;
    const int body = graph.find(side(body_, 3));
    graph.states.push_back({graph.find(state_), body, 0});
    if (random_.chance(0.5)) add_readout();
  }

  /// The fields that are read at a node, as bits.
  unsigned reads(const Event& event, bool is_root) const {
    unsigned result = is_root ? of_root_ : 0;
    const Side* at = &body_;
    for (; result |= at->reads, !at->sides.empty();) {
      const int value = at->by == Side::by_leaf ? event.kids.empty()
                        : at->by == kind_       ? event.kind
                        : at->by == sub_        ? event.sub->number
                                                : event.word->number % 3;
      const std::size_t taken =
          std::size_t(std::find(at->values.begin(), at->values.end(), value) - at->values.begin());
      at = &at->sides[std::min(taken, at->sides.size() - 1)];
    }
    return result;
  }

 private:
  ir::Expr field(int number, const ir::Expr& node) const {
    return ir::call(ir::UfKind::field, graph.fields[std::size_t(number)].name, {node}, number);
  }

  ir::Buffer side(Side& made, int depth) {
    if (depth == 0 || random_.chance(0.25)) return compute(made);
    constexpr int choices[] = {Side::by_leaf, kind_, kind_, sub_, word_};
    made.by = choices[random_.below(5)];
    if (made.by >= 0) made.reads = 1u << made.by;
    const int values = made.by == Side::by_leaf ? 2 : made.by == kind_ ? num_kinds : 3;
    const bool total = made.by != Side::by_leaf && random_.chance(0.5);  // some values have no case of their own
    for (int value = 0; value < values; ++value)
      if (!total || random_.chance(0.5)) made.values.push_back(value);
    if (total) made.values.push_back(-1);
    made.sides.resize(made.values.size());
    std::vector<ir::Buffer> sides;
    for (Side& taken : made.sides) sides.push_back(side(taken, depth - 1));
    return branches(made, sides, total);
  }

  ir::Buffer branches(const Side& made, const std::vector<ir::Buffer>& sides, bool total) {
    const bool of_switch = made.by != Side::by_leaf && random_.chance(0.6);
    ir::Buffer rest = sides.back();
    for (std::size_t c = sides.size() - 1; c-- > 0;) {
      const int then_op = graph.find(sides[c]), else_op = graph.find(rest);
      ra::Op& op = add(ra::OpKind::if_then_else, "branch" + std::to_string(graph.ops.size()), {F_});
      op.node = ir::Var::make("n");
      const ir::Expr key = made.by == Side::by_leaf ? ir::call(ir::UfKind::is_leaf, "is_leaf", {op.node})
                           : made.by == word_       ? field(word_, op.node) % 3
                                                    : field(made.by, op.node);
      op.condition = made.by != Side::by_leaf ? ir::binary(ir::BinaryOp::eq, key, ir::imm(made.values[c]))
                     : c == 0                 ? ir::Unary::make(ir::UnaryOp::logical_not, key)
                                              : key;
      op.then_op = then_op, op.else_op = else_op;
      if (of_switch) op.case_number = int(c);
      if (c == 0 && of_switch && !total) {
        op.key = key;
        for (const int value : made.values) op.cases.push_back(value);
      }
      rest = op.buffer;
    }
    return rest;
  }

  /// What is made of fields that are chosen here: as numbers, as indices of tables, or both.
  ir::Expr term(Side& made, const ir::Expr& n, const ir::Expr& i) {
    switch (random_.below(5)) {
      case 0:
        made.reads |= 1u << sub_;
        return ir::Load::make(add_input(random_, {Dim("subs", num_subs), F_}, 1), {field(sub_, n), i});
      case 1: made.reads |= 1u << word_; return ir::Load::make(table(), {field(word_, n), i});
      case 2: made.reads |= 1u << word_; return ir::Cast::make(DType::f32, field(word_, n) % 4);
      case 3: made.reads |= 1u << sub_; return ir::Load::make(table(), {field(sub_, n) * 3 + 1, i});
      default:
        if (!row_of_) return ir::FloatImm::make(0.25, DType::f32);
        made.reads |= 1u << row_;
        return ir::Load::make(row_of_, {n, i});
    }
  }
  const ir::Buffer& table() {
    if (!table_) table_ = add_input(random_, {Dim("words"), F_}, 1);
    return table_;
  }

  ir::Buffer compute(Side& made) {
    const ir::Expr n = ir::Var::make("n"), i = ir::Var::make("i"), k = ir::Var::make("k");
    ir::Expr value = term(made, n, i) + term(made, n, i);
    const ir::ReduceAxis axis{k, dims::child, ir::call(ir::UfKind::num_children, "count", {n}, 0)};
    value = value + ir::Reduce::make(ir::ReduceOp::sum, axis,
                                     ir::Load::make(state_, {ir::call(ir::UfKind::kth_child, "each", {n, k}, 0), i}));
    ra::Op& op = add(ra::OpKind::compute, "op" + std::to_string(graph.ops.size()), {F_});
    op.node = n, op.index_vars = {i}, op.body = ir::Unary::make(ir::UnaryOp::tanh, value);
    return op.buffer;
  }

  void add_readout() {
    const ir::Expr n = ir::Var::make("n"), i = ir::Var::make("i");
    Side root;
    const ir::Expr value = term(root, n, i) * ir::Load::make(state_, {n, i});
    const ir::Buffer out = add(ra::OpKind::placeholder, "out", {F_}).buffer;
    ra::Op& op = add(ra::OpKind::compute, "readout", {F_});
    op.node = n, op.index_vars = {i}, op.body = value, op.at_roots = true;
    graph.states.push_back({graph.find(out), graph.find(op.buffer), 1});
    of_root_ = root.reads;
  }

  Random random_;
  Dim F_{"width", width};
  ir::Buffer state_, row_of_, table_;
  Side body_;
  unsigned of_root_ = 0;
};

/// Trees of events, each with the data that is read of it.
struct Events {
  std::deque<Event> all;
  std::deque<Fact> facts;
  std::vector<const Event*> roots;
  std::vector<std::pair<Event*, unsigned>> read;  // per event, what is read of it

  Events(Random& random, const RandomBody& body) {
    const auto fact = [&](int below) { return &(facts.push_back({random.below(below)}), facts.back()); };
    for (int r = 1 + random.below(3); r > 0; --r) {
      const std::size_t first = all.size();
      for (int count = 1 + random.below(12); count > 0; --count) {
        Event& event = all.emplace_back();
        event.kind = random.below(num_kinds);
        event.sub = fact(num_subs), event.word = fact(num_words);
        event.row.assign(width, float(random.uniform(-1, 1)));
        if (all.size() > first + 1)
          all[first + std::size_t(random.below(int(all.size() - first) - 1))].kids.push_back(&event);
      }
      roots.push_back(&all[first]);
    }
    for (Event& event : all) read.push_back({&event, body.reads(event, contains(roots, &event))});
    for (auto& [event, fields] : read) {
      if (!(fields & 1u << row_)) event->row.resize(std::size_t(random.below(6)), NAN);
      const auto spoil = [&](const Fact*& of) {
        of = random.chance(0.5) ? nullptr : &facts.emplace_back(Fact{-7 - random.below(99)});
      };
      if (!(fields & 1u << sub_)) spoil(event->sub);
      if (!(fields & 1u << word_)) spoil(event->word);
    }
  }
};

struct EventView final : ra::NodeView {
  explicit EventView(const Events& events) : events(events) {
    for (std::size_t n = 0; n < events.all.size(); ++n) number[&events.all[n]] = int(n);
  }
  int num_nodes() const override { return int(events.all.size()); }
  int child(int, int) const override { return -1; }
  std::vector<int> children(int, int n) const override {
    std::vector<int> result;
    for (const Event* kid : events.all[std::size_t(n)].kids) result.push_back(number.at(kid));
    return result;
  }
  double field(int accessor, int n, int k) const override {
    const Event& event = events.all[std::size_t(n)];
    if (!(events.read[std::size_t(n)].second & 1u << accessor)) FAIL("the equations read what is not read");
    return accessor == kind_  ? event.kind
           : accessor == row_ ? double(event.row[std::size_t(k)])
           : accessor == sub_ ? event.sub->number
                              : event.word->number;
  }
  bool is_leaf(int n) const override { return events.all[std::size_t(n)].kids.empty(); }
  std::vector<int> roots() const override {
    std::vector<int> result;
    for (const Event* root : events.roots) result.push_back(number.at(root));
    return result;
  }
  const Events& events;
  std::map<const Event*, int> number;
};

void check_values(const RandomBody& body, const EventFunctor& functor, const Events& events) {
  const EventView view(events);
  const auto expected = ra::interpret<ra::Bounded>(body.graph, view, interpreter_weights(body));
  const auto result = functor(events.roots);
  for (std::size_t s = 0; s < body.graph.states.size(); ++s) {
    const std::string& name = body.graph.ops[std::size_t(body.graph.states[s].placeholder)].name();
    for (int n = 0; n < view.num_nodes(); ++n) {
      const auto& right = expected[s][std::size_t(n)];
      std::vector<float> values(right.size());
      if (right.empty()) continue;
      result.copy_node(&events.all[std::size_t(n)], name, values);
      for (std::size_t i = 0; i < right.size(); ++i) CHECK(right[i].covers(values[i]));
    }
  }
}

/// Takes away, or spoils, one thing that is read: the call is refused, and the next one is not.
void check_refusal(Random& random, const RandomBody& body, const EventFunctor& functor, Events& events) {
  auto& [event, fields] = events.read[std::size_t(random.below(int(events.read.size())))];
  const Event before = *event;
  if (fields & 1u << sub_)
    event->sub = nullptr;
  else if (fields & 1u << word_)
    event->word = nullptr;
  else if (fields & 1u << row_)
    event->row.push_back(0);
  else
    return;
  bool refused = false;
  try {
    functor(events.roots);
  } catch (const Error& error) {
    refused = error.node == event && error.code == Code::invalid_structure;
  }
  CHECK(refused);
  *event = before;
  check_values(body, functor, events);
}

int run(std::uint64_t first, int count) {
  int cases = 0;
  for (std::uint64_t seed = first; cases < count; ++seed) {
    const RandomBody body(seed);
    Random random(seed);
    for (const Schedule& schedule :
         {Schedule(), Schedule::standard(), Schedule::standard().share_subtrees_where_it_pays(),
          random_schedule(random, body.graph)}) {
      INFO("seed " << seed << ", " << text_of(schedule) << "\n" << ra::print(body.graph));
      std::optional<EventFunctor> functor;
      try {
        functor.emplace(runtime::compile_graph(body.graph, schedule, best_target()));
      } catch (const Error& error) {
        if (error.code != Code::invalid_schedule) FAIL(error.message);
        continue;
      }
      body.each_weight([&](const std::string& name, const auto& values) { functor->bind(name, values); });
      for (int f = 0; f < 4; ++f, ++cases) {
        Random own(seed * 100 + std::uint64_t(f));
        Events events(own, body);
        check_values(body, *functor, events);
        check_refusal(own, body, *functor, events);
      }
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("nodes need the data alone that the sides of branches read which they take", "[differential][smoke]") {
  const int wanted = wanted_cases(100);
  CHECK(run(1, wanted) >= wanted);
}
