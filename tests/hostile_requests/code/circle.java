class A extends B {}
class B extends C {}
class C extends A { void f(A a) { a.