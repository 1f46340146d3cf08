type A = B; type B = A;
declare let a:A; a.