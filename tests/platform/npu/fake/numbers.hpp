// Types of elements (aclDataType): how one is kept, and what is computed with.
#pragma once

#include "halves.hpp"

template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  static Value read(Stored stored) { return stored; }
  static Stored written(Value value) { return value; }
};

template <class Half>
struct Widened {
  using Stored = uint16_t;
  using Value = float;
  static Value read(Stored stored) { return Half{stored}.widened(); }
  static Stored written(Value value) { return Half::rounded(value).bits; }
};

// Calls `visit` with the type that `type` names; false where there is none.
template <class Visit>
bool with_number(int type, Visit visit) {
  switch (type) {
    case 0:
      return visit(Plain<float>()), true;
    case 1:
      return visit(Widened<Float16>()), true;
    case 2:
      return visit(Plain<int8_t>()), true;
    case 3:
      return visit(Plain<int32_t>()), true;
    case 4:
      return visit(Plain<uint8_t>()), true;
    case 6:
      return visit(Plain<int16_t>()), true;
    case 9:
      return visit(Plain<int64_t>()), true;
    case 11:
      return visit(Plain<double>()), true;
    case 27:
      return visit(Widened<BFloat16>()), true;
    default:
      return false;
  }
}
