// Catch2 3 under the name of the one header of Catch2 2, which the tests include.
#pragma once
#include <catch2/catch_all.hpp>
