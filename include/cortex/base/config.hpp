// The only macros of the library, with their defaults. The CMake targets set them.
#pragma once

// 1: compile for the CPU through LLVM. 0: interpreter only; no LLVM header is read.
#ifndef CORTEX_LLVM
#define CORTEX_LLVM 0
#endif

// 1: ask Z3 to prove bounds that rules and intervals do not. 0: no Z3 header is read, and such checks stay.
#ifndef CORTEX_Z3
#define CORTEX_Z3 0
#endif

// 1: the compile seam is only declared here and comes from the library `cortex::compiled`.
#ifndef CORTEX_COMPILED
#define CORTEX_COMPILED 0
#endif

// What the compiler computes with infinities and NaNs, and its checks of weights for them, are wrong where C++ is
// compiled as if there were none.
#if __FINITE_MATH_ONLY__ && !CORTEX_COMPILED
#error "Cortex needs infinities and NaNs: add -fno-finite-math-only (or -fno-fast-math), or link cortex::compiled"
#endif

// 1: AddressSanitizer watches this program. g++ and Clang say so each in its own way.
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define CORTEX_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CORTEX_ADDRESS_SANITIZER 1
#endif
#ifndef CORTEX_ADDRESS_SANITIZER
#define CORTEX_ADDRESS_SANITIZER 0
#endif

// Where views hold as long as what they are of, Clang warns of those that outlive a temporary.
#if defined(__clang__)
#define CORTEX_VIEW_OF_THIS [[clang::lifetimebound]]
#else
#define CORTEX_VIEW_OF_THIS
#endif

// The version, as numbers and as text: "0.1.0". CMakeLists.txt reads the numbers from here.
#define CORTEX_VERSION_MAJOR 0
#define CORTEX_VERSION_MINOR 1
#define CORTEX_VERSION_PATCH 0
#define CORTEX_TEXT_OF_NUMBERS_(major, minor, patch) #major "." #minor "." #patch
#define CORTEX_TEXT_OF_VERSION_(major, minor, patch) CORTEX_TEXT_OF_NUMBERS_(major, minor, patch)  // of their values
#define CORTEX_VERSION CORTEX_TEXT_OF_VERSION_(CORTEX_VERSION_MAJOR, CORTEX_VERSION_MINOR, CORTEX_VERSION_PATCH)

// Part of the names of the compile seam: an old `cortex::compiled` does not link with headers of another number. To be
// raised with every change to what both sides of the seam share that leaves the sizes in `runtime::Abi` as they are.
#ifndef CORTEX_ABI
#define CORTEX_ABI 2
#endif
