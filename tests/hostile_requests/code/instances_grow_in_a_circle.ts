interface A<T> extends B<A<T>>{}
interface B<T> extends A<B<T>>{}
declare let a:A<1>; a.