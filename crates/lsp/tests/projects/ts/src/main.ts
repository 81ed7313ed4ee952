import { Square } from "./shape";
import { total } from "./total";

export function small(): number {
  return total([new Square(1)]);
}

export function large(): number {
  return total([new Square(9)]);
}
