// Random programs: the whole language of operators, where `RandomModel` makes what models look like. Tensors of no, one
// and two dimensions and of many sizes, float or double; values of any expression, used again and again; reductions
// inside one another; switches and branches between any of them; recursions up, down and nowhere, one on the other, and
// readouts. Nothing keeps a program plausible but that its values stay small.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "support/random_models.hpp"

namespace cortex::test {

class RandomProgram : public GraphCase {
 public:
  /// `large_states`: half of the states have rows of 4 KB, of which calls keep fewer where they do not give them out.
  explicit RandomProgram(std::uint64_t seed, bool large_states = false)
      : GraphCase(graph_of_vertices("program", seed)),
        random_(seed),
        divisions_(~seed),
        positions_(~seed ^ 1),
        tags_(~seed ^ 2),
        large_(~seed ^ 3),
        large_states_(large_states) {
    dtype_ = large_states || random_.chance(0.5) ? DType::f64 : DType::f32;
    const ra::StructureKind kinds[] = {ra::StructureKind::sequence, ra::StructureKind::tree, ra::StructureKind::dag};
    graph.structure = kinds[random_.below(3)];
    if (graph.structure != ra::StructureKind::sequence && positions_.chance(0.5))
      graph.max_children = 3 + positions_.below(3);  // three are read by number
    const int extents[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33};
    for (int d = 0; d < 4; ++d) dims_.emplace_back("d" + std::to_string(d), extents[random_.below(11)]);
    if (large_states) dims_[0] = Dim("d0", 16), dims_[1] = Dim("d1", 32);
    const int stages = 1 + random_.below(3);
    for (int stage = 0; stage < stages; ++stage) recursion(stage);
  }

 private:
  using Shape = std::vector<int>;  // numbers of `dims_`
  struct Tensor {
    ir::Buffer buffer;
    Shape shape;
  };
  struct Index {
    ir::Expr var;
    int dim;
  };

  // ---- recursions and operators ----

  void recursion(int number) {
    constexpr ra::Direction ways[] = {ra::Direction::up, ra::Direction::up, ra::Direction::down, ra::Direction::none,
                                      ra::Direction::roots};
    way_ = number == 0 ? ra::Direction::up : readouts_ ? ra::Direction::roots : ways[random_.below(5)];
    readouts_ |= way_ == ra::Direction::roots;
    states_.clear();
    here_.clear();
    std::vector<Tensor> states;
    for (int s = random_.below(2); s >= 0; --s) {
      const Shape shape = large_states_ && large_.chance(0.5) ? Shape{0, 1} : random_shape();
      const std::string name = "state" + std::to_string(number) + "_" + std::to_string(s);
      states.push_back({add(ra::OpKind::placeholder, name, shape).buffer, shape});
    }
    if (recursive()) states_ = states;
    for (int extra = random_.below(4); extra > 0; --extra) compute(random_shape());
    for (const Tensor& state : states) {
      const ir::Buffer body = way_ == ra::Direction::roots ? compute(state.shape) : branches(state.shape);
      graph.states.push_back({graph.find(state.buffer), graph.find(body), number});
    }
    if (way_ != ra::Direction::roots) completed_.insert(completed_.end(), states.begin(), states.end());
  }

  bool recursive() const { return way_ == ra::Direction::up || way_ == ra::Direction::down; }

  Shape random_shape() {
    const int rank = random_.chance(0.2) ? 0 : random_.chance(0.7) ? 1 : 2;
    Shape shape;
    while (int(shape.size()) < rank) shape.push_back(random_.below(4));
    return shape;
  }

  std::string fresh(const char* what) const { return what + std::to_string(graph.ops.size()); }

  ra::Op& add(ra::OpKind kind, std::string name, const Shape& shape) {
    std::vector<Dim> dims;
    for (const int d : shape) dims.push_back(dims_[std::size_t(d)]);
    return GraphCase::add(kind, std::move(name), std::move(dims), dtype_);
  }

  ir::Buffer compute(const Shape& shape) {
    node_ = ir::Var::make("n");
    indices_.clear();
    values_.clear();
    budget_ = 4 + random_.below(24);
    Vector<ir::Expr> vars;
    for (const int d : shape) {
      vars.push_back(ir::Var::make("i"));
      indices_.push_back({vars.back(), d});
    }
    const ir::Expr body = apply(ir::UnaryOp::tanh, value(1 + random_.below(5)));
    ra::Op& op = add(ra::OpKind::compute, fresh("op"), shape);
    op.node = node_;
    op.index_vars = vars;
    op.body = body;
    op.at_roots = way_ == ra::Direction::roots;
    here_.push_back({op.buffer, shape});
    return op.buffer;
  }

  /// An operator, or a choice between some of one shape.
  ir::Buffer branches(const Shape& shape) {
    const ir::Buffer first = compute(shape);
    if (random_.chance(0.4)) return first;
    const ir::Buffer second = compute(shape);
    if (random_.chance(0.5)) return branch(shape, first, second);
    const ir::Buffer chosen = switch_of(shape, {first, second, compute(shape)});
    return random_.chance(0.3) ? branch(shape, second, chosen) : chosen;
  }

  ra::Op& choice(const Shape& shape, const ir::Buffer& a, const ir::Buffer& b) {
    const int then_op = graph.find(a), else_op = graph.find(b);
    ra::Op& op = add(ra::OpKind::if_then_else, fresh("branch"), shape);
    op.node = ir::Var::make("n");
    op.then_op = then_op;
    op.else_op = else_op;
    here_.push_back({op.buffer, shape});
    return op;
  }

  ir::Buffer branch(const Shape& shape, const ir::Buffer& a, const ir::Buffer& b) {
    ra::Op& op = choice(shape, a, b);
    node_ = op.node;
    indices_.clear();
    op.condition = random_.chance(0.3) && way_ != ra::Direction::roots
                       ? ir::call(ir::UfKind::is_leaf, "is_leaf", {node_})
                       : condition(2, false);
    return op.buffer;
  }

  /// On the word's remainder by 3.
  ir::Buffer switch_of(const Shape& shape, const std::vector<ir::Buffer>& bodies) {
    const bool total = random_.chance(0.5);
    ir::Buffer rest = bodies[2];
    for (int c = total ? 1 : 2; c >= 0; --c) {
      ra::Op& op = choice(shape, bodies[std::size_t(c)], rest);
      const ir::Expr key = ir::call(ir::UfKind::field, "word", {op.node}, 0) % 3;
      op.condition = ir::binary(ir::BinaryOp::eq, key, ir::imm(c));
      op.case_number = c;
      if (c == 0 && !total) op.key = key, op.cases = {0, 1, 2};
      rest = op.buffer;
    }
    return rest;
  }

  // ---- what stands at a place: indices, integers, conditions ----

  static ir::Expr apply(ir::UnaryOp op, ir::Expr a) { return ir::Unary::make(op, std::move(a)); }
  ir::Expr number(double v) const { return ir::FloatImm::make(v, dtype_); }
  ir::Expr clamped(const ir::Expr& i, std::int64_t extent) const {
    return ir::binary(ir::BinaryOp::min, ir::binary(ir::BinaryOp::max, i, ir::imm(0)), ir::imm(extent - 1));
  }

  /// An index of dimension `dim`: one in scope, the same backwards, a number, or any integer cut to its extent.
  ir::Expr index(int dim) {
    const std::int64_t extent = dims_[std::size_t(dim)].extent();
    std::vector<ir::Expr> fitting;
    for (const Index& i : indices_)
      if (i.dim == dim) fitting.push_back(i.var);
    if (fitting.empty() || random_.chance(0.08))
      return random_.chance(0.6) ? ir::imm(random_.below(int(extent))) : clamped(integer(1), extent);
    const ir::Expr var = fitting[std::size_t(random_.below(int(fitting.size())))];
    return random_.chance(0.08) ? ir::imm(extent - 1) - var : var;
  }

  /// The node, or the child that a reduction around the place goes through.
  ir::Expr node_or_child() { return child_ && random_.chance(0.5) ? child_ : node_; }

  ir::Expr word() { return ir::call(ir::UfKind::field, "word", {node_or_child()}, 0); }

  ir::Expr integer(int depth) {
    if (depth == 0 || random_.chance(0.5)) {
      const int pick = random_.below(4);
      if (pick == 0) return ir::imm(random_.below(6));
      if (pick == 1 && way_ != ra::Direction::roots)
        return ir::call(ir::UfKind::num_children, "num_children", {node_}, 0);
      if (pick == 2 && !indices_.empty()) return indices_[std::size_t(random_.below(int(indices_.size())))].var;
      if (pick == 3 && position_) return position_;
      return word();
    }
    const ir::Expr a = integer(depth - 1), b = integer(depth - 1);
    switch (random_.below(6)) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return ir::binary(ir::BinaryOp::min, a, b);
      case 3: return divided(a, ir::imm(1 + random_.below(5)));
      case 4: return ir::Select::make(condition(depth - 1, false), a, b);
      default: return a * ir::imm(random_.below(4));
    }
  }

  /// A quotient or a remainder of what may be any number: `a` from below, or what numbers of children make negative,
  /// as far as anyone knows: where they are bounded that is refused.
  ir::Expr divided(const ir::Expr& a, const ir::Expr& by) {
    ir::Expr of = ir::binary(ir::BinaryOp::max, a, ir::imm(0));
    if (divisions_.chance(0.5) && way_ != ra::Direction::roots && !graph.max_children)
      of = (divisions_.chance(0.5) ? of : ir::imm(divisions_.below(4))) -
           ir::call(ir::UfKind::num_children, "num_children", {node_}, 0);
    return divisions_.chance(0.5) ? of / by : of % by;
  }

  /// A question that branches ask, and bodies beside and below them too; the first ones are those of switches.
  ir::Expr question() {
    if (questions_.empty()) {
      const ir::Expr rest = ir::call(ir::UfKind::field, "word", {of_question_}, 0) % 3;
      for (const int c : {0, 1}) questions_.push_back(ir::binary(ir::BinaryOp::eq, rest, ir::imm(c)));
    }
    const int pick = random_.below(int(questions_.size()) + 1);
    if (pick == int(questions_.size()))
      questions_.push_back(ir::binary(ir::BinaryOp::lt, ir::imm(random_.below(6)),
                                      ir::call(ir::UfKind::field, "word", {of_question_}, 0)));
    return ir::substitute(questions_[std::size_t(pick)], {{of_question_.get(), node_}});
  }

  ir::Expr condition(int depth, bool of_data) {
    using enum ir::BinaryOp;
    if (random_.chance(0.15)) return question();
    if (of_data && random_.chance(0.4)) {
      const ir::Expr a = value(1), b = value(1);
      return ir::binary(lt, a, b);
    }
    if (depth > 0 && random_.chance(0.4)) {
      const ir::Expr a = condition(depth - 1, of_data), b = condition(depth - 1, of_data);
      const int pick = random_.below(3);
      return pick == 0 ? apply(ir::UnaryOp::logical_not, a)
                       : ir::Binary::make(pick == 1 ? logical_and : logical_or, a, b);
    }
    if (random_.chance(0.3) && way_ != ra::Direction::roots) return ir::call(ir::UfKind::is_leaf, "is_leaf", {node_});
    constexpr ir::BinaryOp comparisons[] = {lt, eq, ge, ne};
    const ir::Expr a = integer(1), b = integer(1);
    return ir::binary(comparisons[random_.below(4)], a, b);
  }

  // ---- values ----

  ir::Expr element(const Tensor& tensor, const ir::Expr& at) {
    Vector<ir::Expr> indices{at};
    for (const int d : tensor.shape) indices.push_back(index(d));
    return ir::Load::make(tensor.buffer, std::move(indices));
  }

  const Tensor& any(const std::vector<Tensor>& tensors) {
    return tensors[std::size_t(random_.below(int(tensors.size())))];
  }

  /// An element of a new weight: of a vector, a matrix, or a row of a table that the word chooses.
  ir::Expr weight() {
    const bool table = random_.chance(0.4);
    Shape shape = random_shape();
    if (shape.empty() && !table) shape = {random_.below(4)};
    std::vector<Dim> dims;
    Vector<ir::Expr> at;
    if (table && shape.size() > 1 && tags_.chance(0.5)) {
      const int tags = 2 + tags_.below(7);
      dims.push_back(Dim("tags", tags));
      at.push_back(tags_.chance(0.7) ? word() % std::int64_t(tags) : clamped(integer(1), tags));
    } else if (table) {
      dims.push_back(Dim("vocabulary"));
      at.push_back(random_.chance(0.5) ? word() : clamped(integer(1), num_words));
    }
    for (const int d : shape) {
      dims.push_back(dims_[std::size_t(d)]);
      at.push_back(index(d));
    }
    return ir::Load::make(add_input(random_, std::move(dims), 1, dtype_), std::move(at));
  }

  /// One of the node's numbers, or of a child's, which are a vector or a matrix.
  ir::Expr feature() {
    if (!feature_) {
      const int columns = 1 + random_.below(3);
      std::vector<Dim> dims{Dim("feature", 6 / columns)};
      if (columns > 1) dims.push_back(Dim("of_feature", columns));
      feature_ = GraphCase::add(ra::OpKind::field, "x", std::move(dims)).buffer;
    }
    Vector<ir::Expr> at{node_or_child()};
    for (std::size_t d = 1; d < feature_->dims.size(); ++d)
      at.push_back(clamped(integer(1), feature_->dims[d].extent()));
    const ir::Expr x = ir::Load::make(feature_, std::move(at));
    return dtype_ == DType::f32 ? x : ir::Cast::make(dtype_, x);
  }

  /// Where an earlier value of this recursion stands: at a child, by position or by name, or at the parent.
  ir::Expr before() {
    if (child_) return child_;
    if (way_ == ra::Direction::down) return ir::call(ir::UfKind::kth_child, "parents", {node_, ir::imm(0)}, 1);
    const int pick = random_.below(3);
    if (pick < 2) return ir::call(ir::UfKind::child, pick ? "second" : "first", {node_}, pick);
    return ir::call(ir::UfKind::kth_child, "kids", {node_, ir::imm(random_.below(3))}, 0);
  }

  ir::Expr leaf() {
    switch (random_.below(8)) {
      case 0:
      case 1: return weight();
      case 2:
        if (!here_.empty()) return element(any(here_), node_);
        break;
      case 3:
      case 4:
        if (states_.empty()) break;
        if (way_ == ra::Direction::down && !child_ && graph.structure == ra::StructureKind::dag)
          break;  // which parent?
        return element(any(states_), before());
      case 5:
        if (!completed_.empty()) return element(any(completed_), node_or_child());
        break;
      case 6: return feature();
      default: return ir::Cast::make(dtype_, integer(1));
    }
    return number(random_.uniform(-1, 1));
  }

  ir::Expr value(int depth) {
    if (--budget_ < 0 || depth <= 0) return leaf();
    if (!values_.empty() && random_.chance(0.2)) return values_[std::size_t(random_.below(int(values_.size())))];
    const ir::Expr made = combination(depth - 1);
    values_.push_back(made);
    return made;
  }

  ir::Expr combination(int depth) {
    const int pick = random_.below(14);
    if (pick < 3) return function(value(depth));
    if (pick < 7) return dense_reduction(depth);
    if (pick < 9) return fold(depth);
    const ir::Expr a = value(depth), b = value(depth);
    switch (pick) {
      case 9: return a + b;
      case 10: return a * b;
      case 11: return random_.chance(0.5) ? a - b : ir::binary(ir::BinaryOp::max, a, b);
      case 12: return a / (number(1.5) + apply(ir::UnaryOp::abs, b));
      default: return ir::Select::make(random_.chance(0.5) ? question() : condition(1, true), a, b);
    }
  }

  ir::Expr function(const ir::Expr& a) {
    using enum ir::UnaryOp;
    constexpr ir::UnaryOp ops[] = {tanh, sigmoid, relu, abs, neg, erf, sin, cos};
    const int pick = random_.below(10);
    if (pick == 8) return apply(log1p, apply(abs, a));
    if (pick == 9) return apply(exp, ir::binary(ir::BinaryOp::min, a, number(1)));
    return apply(ops[pick], a);
  }

  /// Over a dimension: a mean, the greatest, the least, or a product of what is near one.
  ir::Expr dense_reduction(int depth) {
    const int dim = random_.below(4), pick = random_.below(6);
    const Dim& of = dims_[std::size_t(dim)];
    std::int64_t times = of.extent();  // that the value is computed, by an interpreter too
    for (const Index& i : indices_) times *= dims_[std::size_t(i.dim)].extent();
    if (times > 3000) return leaf();
    const ir::Expr var = ir::Var::make("r");
    const std::size_t known = values_.size();
    indices_.push_back({var, dim});
    ir::Expr each = value(depth);
    if (pick < 2) each = each * value(depth);
    indices_.pop_back();
    values_.resize(known);  // what was made inside may hold the axis
    const ir::ReduceAxis axis{var, of, ir::imm(of.extent())};
    switch (pick) {
      case 3: return ir::Reduce::make(ir::ReduceOp::max, axis, each);
      case 4: return ir::Reduce::make(ir::ReduceOp::min, axis, each);
      case 5: return ir::Reduce::make(ir::ReduceOp::prod, axis, near_one(each));
      default: return ir::Reduce::make(ir::ReduceOp::sum, axis, each) * number(1.0 / double(of.extent()));
    }
  }

  /// Over the children, the parents of a recursion down, or the nodes of a readout.
  ir::Expr fold(int depth) {
    if (child_) return leaf();
    const int container = way_ == ra::Direction::roots ? 2 : way_ == ra::Direction::down ? 1 : 0;
    const ir::Expr var = ir::Var::make("k");
    const std::size_t known = values_.size();
    child_ = ir::call(ir::UfKind::kth_child, "each", {node_, var}, container);
    if (container == 0) position_ = var;  // parents and members have no order
    ir::Expr each = value(depth);
    if (container == 0 && graph.max_children && !states_.empty() && positions_.chance(0.5))
      each = positions_.chance(0.5) ? product_by_position() : each * product_by_position();
    child_ = position_ = ir::Expr();
    values_.resize(known);
    const ir::ReduceAxis axis{var, dims::child, ir::call(ir::UfKind::num_children, "count", {node_}, container)};
    const int pick = random_.below(4);
    if (pick == 0) return ir::Reduce::make(ir::ReduceOp::prod, axis, near_one(each));
    if (pick == 1 && container == 2) return ir::Reduce::make(ir::ReduceOp::max, axis, each);
    return ir::Reduce::make(ir::ReduceOp::sum, axis, apply(ir::UnaryOp::tanh, each));
  }

  /// A row of a matrix of the child's position, and an element of a vector of it, with what is in a state of the child.
  ir::Expr product_by_position() {
    const Tensor& state = states_[std::size_t(positions_.below(int(states_.size())))];
    const Dim P("position", graph.max_children);
    if (state.shape.empty()) return ir::Load::make(state.buffer, {child_});
    const Dim& summed = dims_[std::size_t(state.shape.back())];
    const ir::Expr r = ir::Var::make("r");
    std::vector<Dim> dims{P};
    Vector<ir::Expr> at{position_}, of_state{child_};
    for (const Index& index : indices_) {
      if (dims.size() == 2) break;
      dims.push_back(dims_[std::size_t(index.dim)]), at.push_back(index.var);
    }
    dims.push_back(summed), at.push_back(r);
    for (std::size_t d = 0; d + 1 < state.shape.size(); ++d)
      of_state.push_back(ir::imm(positions_.below(int(dims_[std::size_t(state.shape[d])].extent()))));
    of_state.push_back(r);
    const ir::Expr product =
        ir::Load::make(add_input(positions_, std::move(dims), 1 / std::sqrt(double(summed.extent())), dtype_),
                       std::move(at)) *
        ir::Load::make(state.buffer, std::move(of_state));
    const ir::Expr bias = ir::Load::make(add_input(positions_, {P}, 1, dtype_), {position_});
    return bias + ir::Reduce::make(ir::ReduceOp::sum, {r, summed, ir::imm(summed.extent())}, product);
  }

  ir::Expr near_one(const ir::Expr& a) const { return apply(ir::UnaryOp::tanh, a) * number(0.3) + number(1); }

  Random random_;
  Random divisions_, positions_, tags_, large_;  // of their own: what stands around them is the same without them
  bool large_states_;
  DType dtype_ = DType::f32;
  std::vector<Dim> dims_;
  ra::Direction way_ = ra::Direction::up;
  bool readouts_ = false;
  std::vector<Tensor> states_, here_, completed_;  // of this recursion, its operators, and states of those before
  ir::Buffer feature_;                             // the nodes' numbers, once they are read
  ir::Expr of_question_ = ir::Var::make("of");
  std::vector<ir::Expr> questions_;  // over `of_question_`
  // Where the value that is being made stands.
  ir::Expr node_, child_, position_;
  std::vector<Index> indices_;
  std::vector<ir::Expr> values_;  // those that can be used again here
  int budget_ = 0;
};

}  // namespace cortex::test
