interface Price {
  amount: number;
  currency: string;
}

interface Product {
  readonly id: string;
  title: string;
  price: Price;
  tags: string[];
  stock: Map<string, number>;
  discount?: (price: Price) => Price;
}

class Warehouse {
  private products: Product[] = [];
  readonly openedOn: Date;

  constructor(readonly city: string, private capacity: number) {
    this.openedOn = new Date(0);
  }

  addProduct(product: Product): boolean {
    if (this.products.length >= this.capacity) {
      return false;
    }
    this.products.push(product);
    return true;
  }

  findByTag(tag: string): Product[] {
    return this.products.filter((product) => product.tags.includes(tag));
  }

  totalValue(): number {
    let sum = 0;
    for (const product of this.products) {
      sum += product.price.amount * this.countOf(product);
    }
    return sum;
  }

  countOf(product: Product): number {
    let count = 0;
    product.stock.forEach((value) => {
      count += value;
    });
    return count;
  }
}

function describe(product: Product): string {
  const title = product.title.trim();
  const price = product.price.amount.toFixed(2);
  const tags = product.tags.map((tag) => tag.toLowerCase()).join(", ");
  return title.toUpperCase() + price + tags;
}

function cheapest(warehouse: Warehouse, tag: string): Product | undefined {
  const found = warehouse.findByTag(tag);
  found.sort((a, b) => a.price.amount - b.price.amount);
  const first = found[0];
  if (found.length === 0) {
    return undefined;
  }
  return first;
}

const warehouse = new Warehouse("Lyon", 100);
const pen: Product = {
  id: "p1",
  title: "Pen",
  price: { amount: 1.5, currency: "EUR" },
  tags: ["office"],
  stock: new Map(),
};
pen.stock.set("shelf", 4);
warehouse.addProduct(pen);
const label = describe(pen).split(",")[0];
const year = warehouse.openedOn.getFullYear();
const value = warehouse.totalValue().toString();
const city = warehouse.city.charAt(0);
