struct Shape {
  virtual int area() const = 0;
};

struct Square : Shape {
  int side;
  explicit Square(int side) : side(side) {}
  int area() const override { return side * side; }
};

int total(const Shape &one, const Shape &two) { return one.area() + two.area(); }

int small() { return total(Square(1), Square(2)); }

int large() { return total(Square(8), Square(9)); }
