// What a kernel's text begins with: where its call, its buffers and the words of its barrier are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "cortex/codegen/cuda_kernel.hpp"
#include "cortex/codegen/cuda_spelling.hpp"
#include "cortex/codegen/memo.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::codegen::detail {

class CudaEntry {
 protected:
  CudaEntry(const ir::Program& program, const CudaTextOptions& options)
      : program_(program), options_(options), part_(program) {}

  void heading() {
    line("const int thread = thread_number(), group = block_number() / BLOCKS, worker = block_number() % BLOCKS;");
  }

  void declare_chip() {
    if (!has_chip_) line("SHARED(chip);");
    has_chip_ = true;
  }

  /// Finds the call, and brings the group's part to shared memory if there is room: pointers that lie there take fewer
  /// registers, and it may have come with the launch.
  void find_call() {
    part_bytes_ = room_for_part(program_, options_.shared_bytes);
    if (!part_bytes_) return line("const u64* const head = launch.call + part_of(group);");
    const std::string place = "chip + " + std::to_string(codegen::chip_bytes(program_));
    with_launch_ = most_with_launch(program_, options_.shared_bytes);
    declare_chip();
    line("bring_part(", place, ", launch.call, ", came_in(), ", group);");
    line("sync_block();");
    line("const u64* const head = (const u64*)(", place, ");");
  }

  /// Whether the call has come with the launch, and where it is there, or null.
  const char* came() const { return with_launch_ ? "launch.with_launch" : "false"; }
  const char* came_in() const { return with_launch_ ? "launch.with_launch ? launch.in : 0" : "0"; }

  /// The rows that are moved before the program runs, or after it.
  std::string rows(const char* when) const {
    return std::string("rows_") + when + "(head, end_of(" + call_ + ", head, " + came() + "))";
  }

  /// Those buffers for which `wanted(buffer)`: in shared memory, or where the array `table` says, which is read by
  /// `load`.
  template <class Wanted>
  void buffers(const Wanted& wanted, const char* table, const std::string& load) {
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const ir::Buffer& buffer = program_.buffers[i];
      if (!wanted(buffer)) continue;
      if (buffer->dtype == DType::boolean) refuse_cuda("buffer " + buffer->name + " of booleans");
      const std::string name = "b" + std::to_string(i), type(cuda_scalar(buffer->dtype));
      names_.emplace(buffer.id(), name);
      if (ir::is_on_chip(buffer->scope)) {
        mirrors_ |= buffer->scope == ir::Scope::mirrored && options_.blocks > 1;
        declare_chip();
        line(type, "* const ", name, " = (", type, "*)(chip + ", std::to_string(chip_bytes_), ");");
        chip_bytes_ += ir::chip_bytes(*buffer);
      } else {
        const std::string pointer = (is_invariant(buffer) ? "const " : "") + type + "*";
        const auto entry = [&](std::size_t at) { return load + "(" + table + ", " + std::to_string(at) + ")"; };
        const std::string first = entry(i);
        line(pointer, " const ", name, " = (", pointer, ")",
             part_.is_own(i) ? "(" + first + " + worker * " + entry(part_.step(i)) + ")" : first, ";");
      }
    }
  }

  /// Brings the linearizer's arrays to shared memory if they have room there: at each level they are read one after the
  /// other before anything else can begin, and barriers of blocks empty the L1 cache. Of a call that came with the
  /// launch all is brought.
  void bring_structure() {
    const std::int64_t room = room_for_structure(program_, options_.shared_bytes);
    if (!room) return;
    const auto counts = std::find_if(program_.buffers.begin(), program_.buffers.end(),
                                     [](const ir::Buffer& buffer) { return is_counts(*buffer); });
    const std::string first = name_of(*counts), near = "chip + " + std::to_string(chip_bytes_ + part_bytes_);
    declare_chip();
    const auto in_head = [](std::size_t word) { return "(int)load_row(head, " + std::to_string(word) + ")"; };
    const std::string may = in_head(CudaPart::near_bytes),
                      fits = "bytes && bytes <= " + std::to_string(room - part_bytes_);
    if (with_launch_) {
      line("const int bytes = ", came(), " ? ", in_head(CudaPart::arrays_bytes), " : ", may, ";");
      line("const bool brought = ", came(), " || (", fits, ");");
    } else {
      line("const int bytes = ", may, ";");
      line("const bool brought = ", fits, ";");
    }
    line("if (brought) bring_arrays(", near, ", ", call_, ", ", came_in(), ", head, bytes);");
    line("sync_block();");
    line("const char* const structure = brought ? ", near, " : (const char*)", first, ";");
    for (const ir::Buffer& buffer : program_.buffers) {
      if (!is_structure(*buffer)) continue;
      std::string& name = names_.find(buffer.id())->second;
      line("const int* const s", name, " = (const int*)(structure + ((const char*)", name, " - (const char*)", first,
           "));");
      name = "s" + name;
    }
    structure_brought_ = true;
    chip_bytes_ += room;
  }

  void barrier_words() {
    const int words = cuda_barrier_words(options_.barrier, options_.blocks);
    if (!words) return;
    const std::string own = "launch.words + group * " + std::to_string(words);
    line("Group own = {", own, ", launch.fault, group, first_turn(", own, ", worker)};");
  }

  template <class... Parts>
  void line(const Parts&... parts) {
    text_.append(std::size_t(2 * depth_), ' ');
    ((text_ += parts), ...);
    text_ += '\n';
  }

  const std::string& name_of(const ir::Buffer& buffer) const {
    const auto found = names_.find(buffer.id());
    if (found == names_.end()) refuse_cuda("buffer " + buffer->name + " is not the program's");
    return found->second;
  }

  const ir::Program& program_;
  const CudaTextOptions& options_;
  const CudaPart part_;
  std::string text_;
  int depth_ = 1;
  PointerMap<std::string> names_;
  std::int64_t chip_bytes_ = 0;
  std::int64_t part_bytes_ = 0;       // that the group's part has in shared memory
  std::string call_ = "launch.call";  // where it is in memory
  std::size_t with_launch_ = 0;       // how large a call may be that comes with its launch
  bool has_chip_ = false;
  bool structure_brought_ = false;
  bool mirrors_ = false;  // blocks write to each other's shared memory
};

}  // namespace cortex::codegen::detail
