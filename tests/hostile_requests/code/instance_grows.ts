interface A<T> extends A<A<T>>{}
declare let a:A<number>; a.