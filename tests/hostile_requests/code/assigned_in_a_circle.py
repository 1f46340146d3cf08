a = b
b = a
a.