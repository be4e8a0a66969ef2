// Weights in files: the safetensors format, read and written, and bound to models by name.
//
//   const auto file = cortex::SafetensorsFile::open("tree_lstm.safetensors");
//   cortex::bind(model, file);                                     // every input by its own name
//   cortex::bind(model, file, {{"U_i", "encoder.u_i.weight"}});    // some by a foreign one
//   std::vector<float> table = file.read<float>("Emb");            // or one by one
//   cortex::write_safetensors("copy.safetensors", {{"Emb", {10000, 256}, table}}, {{"format", "pt"}});
//
// A file is 8 bytes that say how long its header is, the header (JSON: each tensor's type, shape and place), and the
// tensors' elements, little-endian and row-major. Reading is strict: whatever does not add up is refused with a message
// that names the file and the tensor. Not part of cortex.hpp, because of what its JSON costs to compile; needs
// nlohmann/json.hpp.
#pragma once

#include "cortex/weights/bind.hpp"
#include "cortex/weights/safetensors_file.hpp"
#include "cortex/weights/safetensors_write.hpp"
