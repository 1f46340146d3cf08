class A(A):
  pass
a = A()
a.