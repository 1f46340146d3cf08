class A(B): pass
class B(C): pass
class C(A): pass
a = A()
a.