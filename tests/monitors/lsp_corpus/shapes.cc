// Of the corpus for the LSP tier: each member that is named here exists.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#define FIELD weight_
#define CALL(object) object.Area()

namespace corpus {

struct Point {
  double x = 0, y = 0;
  Point Plus(const Point& other) const { return {x + other.x, y + other.y}; }
  Point operator-() const { return {-x, -y}; }
};

class Shape {
 public:
  virtual ~Shape() = default;
  virtual double Area() const = 0;
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  double weight_ = 1;

 protected:
  int secret_ = 0;

 private:
  std::string name_;
};

class Circle : public Shape {
 public:
  explicit Circle(Point center, double radius) : center_(center), radius_(radius) {}
  double Area() const override { return 3 * radius_ * radius_ + this->secret_; }
  Point center_;
  double radius_;
};

class Group : public Shape {
 public:
  void Add(std::unique_ptr<Shape> shape) {
    if (shape != nullptr && shape->Area() > 0) shapes_.push_back(std::move(shape));
  }
  double Area() const override {
    double sum = 0;
    for (const auto& shape : shapes_) sum += shape->Area();
    return sum;
  }
  const Shape* Largest() const;
  struct Counter {
    int seen = 0;
    Counter& Next() {
      ++this->seen;
      return *this;
    }
  };
  Counter counter;

 private:
  std::vector<std::unique_ptr<Shape>> shapes_;
};

const Shape* Group::Largest() const {
  const auto best =
      std::max_element(shapes_.begin(), shapes_.end(),
                       [](const auto& a, const auto& b) { return a->Area() < b->Area(); });
  return best == shapes_.end() ? nullptr : best->get();
}

template <typename T>
struct Box {
  T value;
  T& Get() { return value; }
  template <typename U>
  U As() const {
    return static_cast<U>(value);
  }
};

template <typename T>
double SumOf(const std::vector<T>& all) {
  double sum = 0;
  for (const T& one : all) sum += one.x;
  if (!all.empty()) sum += all.front().y;
  return sum;
}

template <typename T>
auto Doubled(Box<T> box) {
  return box.Get() * 2 + box.value;
}

double Measure(Group& group, const std::map<std::string, Point>& points) {
  Circle circle({1, 2}, 3);
  circle.set_name("circle");
  double sum = circle.Area() + circle.center_.x + circle.center_.Plus({1, 1}).y;
  sum += circle.FIELD + CALL(circle);
  Shape& shape = circle;
  sum += static_cast<double>(shape.name().size());
  Circle* pointer = &circle;
  sum += pointer->radius_ + pointer->center_.x + (*pointer).Area();
  for (const auto& [key, point] : points) {
    sum += point.x + static_cast<double>(key.length());
  }
  const auto found = points.find("origin");
  if (found != points.end()) sum += found->second.y + found->second.Plus({}).x;
  Box<Point> box{{1, 2}};
  sum += box.Get().x + box.value.y;
  Box<int> numbers{4};
  sum += numbers.template As<double>();
  const auto scale = [&box](double by) { return box.value.x * by; };
  sum += scale(2);
  const auto generic = [](const auto& any) { return any.x; };
  sum += generic(box.value);
  std::optional<Point> maybe;
  if (maybe.has_value()) sum += maybe->x + maybe.value().y;
  auto owned = std::make_unique<Group>();
  owned->Add(nullptr);
  group.Add(std::move(owned));
  sum += group.counter.Next().Next().seen;
  if (const Shape* largest = group.Largest(); largest != nullptr) sum += largest->Area();
  std::string text = "a.b->c";
  text.append(text.substr(1)).push_back('x');
  // circle.nothing is said in a comment
  sum += circle.Shape::weight_;
  sum += std::vector<Point>{{1, 2}, {3, 4}}[1].x + 1.5 + SumOf(std::vector<Point>{{}});
  return sum + Doubled(Box<double>{1}) + (-circle.center_).y;
}

}  // namespace corpus
