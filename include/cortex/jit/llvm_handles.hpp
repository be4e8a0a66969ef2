// Owners of LLVM's C API objects, and how its errors become ours.
#pragma once

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <string>

#include "cortex/base/error.hpp"

namespace cortex::jit::llvm {

/// Owns an object. In place of std::unique_ptr, whose six kinds here would cost as much to compile as half of a pass.
template <class Ref, void (*dispose)(Ref)>
class Handle {
 public:
  explicit Handle(Ref object = nullptr) : object_(object) {}
  Handle(Handle&& other) noexcept : object_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Handle() { reset(); }

  Ref get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset(Ref object = nullptr) {
    if (object_) dispose(object_);
    object_ = object;
  }
  Ref release() {
    const Ref object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  Ref object_;
};

using Context = Handle<LLVMContextRef, LLVMContextDispose>;
using Module = Handle<LLVMModuleRef, LLVMDisposeModule>;
using Buffer = Handle<LLVMMemoryBufferRef, LLVMDisposeMemoryBuffer>;
using Machine = Handle<LLVMTargetMachineRef, LLVMDisposeTargetMachine>;
using Layout = Handle<LLVMTargetDataRef, LLVMDisposeTargetData>;
using PassOptions = Handle<LLVMPassBuilderOptionsRef, LLVMDisposePassBuilderOptions>;

/// A string that LLVM allocated, given back.
inline std::string taken(char* message) {
  if (!message) return {};
  std::string text(message);
  LLVMDisposeMessage(message);
  return text;
}

/// The words of an error, which is used up.
inline std::string taken(LLVMErrorRef error) {
  char* message = LLVMGetErrorMessage(error);
  std::string text(message);
  LLVMDisposeErrorMessage(message);
  return text;
}

/// An ORC session with what it holds: the code lives as long as it does. Its complaints are collected here, since
/// LLVM would write them to stderr.
class Session {
 public:
  explicit Session(LLVMOrcLLJITRef jit) : jit_(jit) {
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit), &Session::report, this);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    if (LLVMErrorRef error = LLVMOrcDisposeLLJIT(jit_)) LLVMConsumeError(error);
  }
  LLVMOrcLLJITRef get() const { return jit_; }
  const std::string& complaints() const { return complaints_; }

 private:
  static void report(void* self, LLVMErrorRef error) {
    static_cast<Session*>(self)->complaints_ += taken(error) + "\n";
  }

  LLVMOrcLLJITRef jit_;
  std::string complaints_;
};

}  // namespace cortex::jit::llvm
