package demo.app;
import java.io.*;
import java.nio.file.*;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

abstract class Base<T extends Base<T>> implements Comparable<T>, AutoCloseable {
  protected final int id;
  private static final AtomicInteger NEXT = new AtomicInteger();
  Base() {
    id = NEXT.incrementAndGet();
  }
  abstract T self();
  T named(String n) {
    this.name = n;
    return self();
  }
  protected String name;
  @Override
  public int compareTo(T o) {
    return Integer.compare(id, o.id);
  }
  @Override
  public void close() throws IOException {}
}
final class Leaf extends Base<Leaf> {
  Leaf self() {
    return this;
  }
  int leafOnly() {
    return id + name.length();
  }
}
class Node<K extends Comparable<K>, V> {
  K key;
  V value;
  Node<K, V> left, right, parent;
  Node(K k, V v) {
    key = k;
    value = v;
  }
  Node<K, V> find(K k) {
    int c = k.compareTo(key);
    return c == 0       ? this
        : c < 0         ? (left == null ? null : left.find(k))
        : right == null ? null
                        : right.find(k);
  }
  int height() {
    return 1 + Math.max(left == null ? 0 : left.height(), right == null ? 0 : right.height());
  }
}
public class Library
    extends HashMap<String, List<Integer>> implements Iterable<Integer>, Cloneable {
  private static final long serialVersionUID = 1L;
  volatile int v;
  transient Object t;
  int[] arr[] = new int[3][];
  public Iterator<Integer> iterator() {
    return values().stream().flatMap(List::stream).iterator();
  }
  @Override
  public Library clone() {
    Library c = (Library) super.clone();
    c.v = this.v;
    c.put("x", new ArrayList<>());
    return c;
  }
  static <E extends Enum<E>> E parse(Class<E> c, String s) {
    for (E e : c.getEnumConstants())
      if (e.name().equalsIgnoreCase(s))
        return e;
    return Enum.valueOf(c, s);
  }
  int total() {
    int s = 0;
    for (int x : this) s += x;
    return s + size() + super.size() + this.keySet().size();
  }
  public static void main(String[] a) throws Exception {
    System.out.println(new Leaf().named("l").leafOnly()
        + parse(DayOfWeek.class, "monday").getValue() + new Library().clone().total());
    ExecutorService ex = Executors.newFixedThreadPool(2);
    Future<Integer> f = ex.submit(() -> 3);
    System.out.println(f.get(1, TimeUnit.SECONDS).intValue());
    ex.shutdown();
    CompletableFuture.supplyAsync(() -> "a")
        .thenApply(String::length)
        .thenCombine(CompletableFuture.completedFuture(2), Integer::sum)
        .thenAccept(n -> System.out.println(n.byteValue()))
        .exceptionally(e -> {
          System.out.println(e.getMessage().length());
          return null;
        })
        .join();
    try (BufferedReader r = Files.newBufferedReader(Path.of("x"));
         PrintWriter w = new PrintWriter(new FileWriter("y"), true)) {
      String line;
      while ((line = r.readLine()) != null)
        w.println(line.split(",")[0].trim().toLowerCase(Locale.ROOT));
    } catch (final IOException e) {
      e.printStackTrace();
      throw new UncheckedIOException(e.getMessage(), e);
    }
    Duration d = Duration.between(Instant.EPOCH, Instant.now());
    System.out.println(
        d.toMillis() + LocalDate.of(2020, Month.MARCH, 1).plusDays(1).getDayOfWeek().getValue());
    Node<String, Integer> n = new Node<>("a", 1);
    n.left = new Node<>("b", 2);
    n.left.parent = n;
    System.out.println(n.find("b").value.intValue() + n.left.parent.key.length() + n.height());
    new Library().arr[0] = new int[] {1};
    int[] q[] = {{1}};
    System.out.println(q[0][0] + q[0].length);
    Deque<int[]> dq = new ArrayDeque<>();
    dq.push(new int[] {1, 2});
    System.out.println(dq.peek()[0] + dq.pop().length);
    PriorityQueue<Map.Entry<String, Integer>> pq =
        new PriorityQueue<>((x, y) -> y.getValue() - x.getValue());
    pq.offer(Map.entry("a", 1));
    System.out.println(pq.poll().getKey().length());
    Map<String, Map<String, Integer>> mm = new TreeMap<>(Comparator.reverseOrder());
    mm.computeIfAbsent("a", k -> new LinkedHashMap<>()).merge("b", 1, (x, y) -> x + y);
    mm.forEach(
        (k, w)
            -> w.forEach((k2, c) -> System.out.println(k.length() + k2.length() + c.intValue())));
    BitSet bs = new BitSet();
    bs.set(1);
    System.out.println(bs.cardinality() + Integer.MAX_VALUE + Long.parseLong("1")
        + Character.getNumericValue('1') + Double.compare(1, 2));
    List<String>[] buckets = new List[3];
    buckets[0] = new ArrayList<>();
    buckets[0].add("s");
    System.out.println(buckets[0].get(0).length());
    String s = null;
    System.out.println(Objects.requireNonNullElse(s, "d").length() + ("a" + 1).length()
        + (s == null ? "x" : s).length() + new String(new char[] {'a'}).intern().length()
        + ((Object) "c").toString().length() + "a,b".split(",").length);
    Callable<List<String>> cl = Collections::emptyList;
    System.out.println(cl.call().size());
    java.util.function.Predicate<String> pr = String::isEmpty;
    System.out.println(pr.negate().and(z -> z.length() > 1).test("ab"));
    java.util.List<java.lang.String> fq = java.util.List.of();
    System.out.println(fq.isEmpty());
  }
  static class Counter<T> {
    private final Map<T, Integer> m = new HashMap<>();
    void add(T t) {
      m.put(t, m.containsKey(t) ? m.get(t) + 1 : 1);
    }
    T top() {
      return Collections.max(m.entrySet(), Map.Entry.comparingByValue()).getKey();
    }
    static <T> Counter<T> of(Iterable<? extends T> it) {
      Counter<T> c = new Counter<>();
      it.forEach(c::add);
      return c;
    }
  }
  static {
    System.out.println(Counter.of(List.of("a")).top());
  }
}
