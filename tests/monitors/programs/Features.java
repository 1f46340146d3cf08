import static java.lang.Math.max;
import static java.util.stream.Collectors.*;

import java.util.*;
import java.util.function.*;
import java.util.stream.*;

public class Features {
  sealed interface Shape permits Circle, Rect, Tri {}
  record Circle(double r) implements Shape {
    Circle {
      if (r < 0)
        throw new IllegalArgumentException("r: " + r);
    }
    static Circle unit() {
      return new Circle(1);
    }
    double area() {
      return Math.PI * r * r();
    }
  }
  record Rect(double w, double h) implements Shape {
    Rect(double s) {
      this(s, s);
    }
  }
  record Tri(double base, double height) implements Shape {}
  record Pair<A, B>(A first, B second) {
    <C> Pair<C, B> mapFirst(Function<? super A, ? extends C> f) {
      return new Pair<>(f.apply(first), second);
    }
  }
  enum Op implements IntBinaryOperator {
    ADD("+") {
      @Override
      public int applyAsInt(int a, int b) {
        return a + b;
      }
    },
    SUB("-") {
      @Override
      public int applyAsInt(int a, int b) {
        return a - b;
      }
      int extra() {
        return 1;
      }
    };
    private final String sym;
    Op(String s) {
      this.sym = s;
    }
    String sym() {
      return sym.trim();
    }
    static Optional<Op> of(String s) {
      return Arrays.stream(values()).filter(o -> o.sym.equals(s)).findFirst();
    }
  }
  interface Greeter {
    String name();
    default String greet() {
      return "Hi " + name().toUpperCase().concat("!");
    }
    static Greeter of(String n) {
      return () -> n;
    }
    private int hidden() {
      return name().length();
    }
  }
  static double area(Shape s) {
    if (s instanceof Circle c && c.r() > 0)
      return c.area();
    if (!(s instanceof Rect q))
      return 0;
    return q.w() * q.h();
  }
  // clang-format off
  static String text = """
      Hello "world"
        {"a": 1}.foo
      """.stripIndent().formatted();
                       // clang-format on
                       static <T extends Comparable<? super T>> T
                       best(Collection<? extends T> xs) {
    Iterator<? extends T> it = xs.iterator();
    T b = it.next();
    while (it.hasNext()) {
      T n = it.next();
      if (n.compareTo(b) > 0)
        b = n;
    }
    return b;
  }
  public static void main(String... args) throws Exception {
    var list = new ArrayList<Map.Entry<String, List<Integer>>>();
    list.add(Map.entry("a", List.of(1, 2)));
    list.add(new AbstractMap.SimpleEntry<>("b", new LinkedList<>()));
    for (var e : list) System.out.println(e.getKey().length() + e.getValue().size());
    Map<Integer, List<String>> g =
        Stream.of("x", "yy").collect(groupingBy(String::length, TreeMap::new, toList()));
    g.entrySet()
        .stream()
        .sorted(Map.Entry.comparingByKey())
        .map(e -> e.getValue().get(0).charAt(0))
        .forEach(System.out::println);
    System.out.println(IntStream.rangeClosed(1, 3)
                           .mapToObj(i -> new Pair<>(i, "v" + i))
                           .map(q -> q.mapFirst(n -> n.doubleValue()))
                           .map(q -> q.first().intValue() + q.second().length())
                           .collect(toList())
                           .size());
    Runnable r = new Runnable() {
      int n = 1;
      @Override
      public void run() {
        n++;
        System.out.println(this.n + text.length());
      }
    };
    r.run();
    Supplier<Supplier<String>> ss = () -> () -> "q";
    System.out.println(ss.get().get().isEmpty());
    int day = 3;
    String name = switch (day) { case 1, 7 -> "weekend"; case 3 -> { String t = "mid"; yield t.concat("x"); } default -> "d"; }; System.out.println(name.length());
    switch (Op.ADD) { case ADD:
        System.out.println(Op.ADD.sym());
        break;
      case SUB:
      default:
        System.out.println(Op.valueOf("SUB").ordinal());
    }
    int[][] grid = {{1, 2}, {3}};
    System.out.println(grid[0].length + grid.length + grid[0].clone().length);
  label:
    for (int[] row : grid) {
      for (int v : row) {
        if (v == 2)
          continue label;
        if (v > 9)
          break label;
      }
    }
    try (var sc = new Scanner("a b"); Scanner s2 = new Scanner("c")) {
      System.out.println(sc.next().length() + s2.nextLine().length());
    } catch (NoSuchElementException | IllegalStateException e) {
      System.out.println(e.getMessage().length());
    } finally {
      System.out.println(max(1, 2));
    }
    Comparator<Pair<String, Integer>> cmp =
        Comparator.comparing((Pair<String, Integer> q) -> q.second())
            .reversed()
            .thenComparing(Pair::first);
    System.out.println(cmp.compare(new Pair<>("a", 1), new Pair<>("b", 2)));
    class Local {
      int z = 4;
      Local self() {
        return this;
      }
    }
    System.out.println(new Local().self().z + new Features().new Inner().deep.get("k").size());
    Object o = args;
    if (o instanceof String[] arr)
      System.out.println(arr.length);
    Object x = (Comparator<String> & java.io.Serializable) (a, b) -> a.length() - b.length();
    System.out.println(((Comparator<?>) x).hashCode());
    System.out.println(best(List.of("a", "b")).length() + Greeter.of("n").greet().length()
        + "lit".chars()
              .filter(Character::isLetter)
              .boxed()
              .mapToInt(Integer::intValue)
              .summaryStatistics()
              .getMax()
        + String.valueOf('c').repeat(2).length() + int.class.getName().length()
        + String[].class.getSimpleName().length() + Features.super_().length());
    Optional<String> opt = Optional.of("s");
    System.out.println(opt.map(String::toUpperCase)
                           .filter(s -> s.startsWith("S"))
                           .or(() -> Optional.empty())
                           .orElseGet(() -> "z")
                           .length());
    char ch = "a".charAt(0);
    ch += 1;
    long l = 3L;
    l <<= 2;
    final int k;
    if (l > 2) {
      k = 1;
    } else {
      k = 2;
    }
    System.out.println(k + ch);
    BiFunction<Integer, Integer, Integer> f = Math::addExact;
    System.out.println(f.andThen(String::valueOf).apply(1, 2).length());
    UnaryOperator<String> up = String::trim;
    System.out.println(up.compose((String s) -> s + "x").apply("y").length());
    List<? extends Number> nums = List.of(1, 2.0);
    for (Number n : nums) System.out.println(n.intValue());
    System.out.println(nums.get(0).doubleValue());
    StringBuilder sb =
        new StringBuilder().append(1).append('c').append("s").insert(0, true).reverse();
    System.out.println(sb.toString().length() + sb.length());
    Thread t = new Thread(() -> {});
    t.setDaemon(true);
    t.start();
    t.join();
    synchronized (t) {
      t.notifyAll();
    }
    System.out.println(Thread.State.NEW.name().length() + t.getState().ordinal());
    for (int i = 0, j = 5; i < j; i++, j--)
      ;
    do {
      day--;
    } while (day > 0);
    assert day == 0 : "d".length();
    Function<Object, String> fo = Object::toString;
    Object[] objs = {1, "a", new int[] {1}};
    System.out.println(fo.apply(objs[0]).length() + objs.length);
    EnumMap<Op, Integer> em = new EnumMap<>(Op.class);
    em.merge(Op.ADD, 1, Integer::sum);
    System.out.println(em.getOrDefault(Op.SUB, 0).byteValue());
    Iterator<String> iter = new Iterator<>() {
      public boolean hasNext() {
        return false;
      }
      public String next() {
        return "";
      }
    };
    System.out.println(iter.next().length());
  }
  static String super_() {
    return "x";
  }
  class Inner {
    Map<String, Set<Integer>> deep = new HashMap<>() {
      { put("k", new TreeSet<>(Arrays.asList(1))); }
    };
    int outer() {
      return Features.this.hashCode() + Features.text.length();
    }
  }
  @FunctionalInterface
  interface Tri3<A, B, C, R> {
    R apply(A a, B b, C c);
  }
  @interface Marker {
    String value() default "x";
    int[] nums() default {1, 2};
  }
  @Marker(value = "q", nums = {3})
  @SuppressWarnings({"unchecked", "rawtypes"})
  static List raw() {
    List l = new ArrayList();
    l.add("a");
    return l;
  }
  static int sum(int first, int... rest) {
    int s = first;
    for (int v : rest) s += v;
    return s + rest.length;
  }
  static {
    System.out.println(sum(1, 2, 3));
  }
  { System.out.println(this.getClass().getSimpleName().length()); }
}
