CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users(id), total REAL, placed TEXT);
INSERT INTO users (name, age, city) VALUES
  ('Ann', 34, 'Oslo'), ('Bob', 51, 'Rome'), ('Cem', 28, 'Bonn'), ('Dora', 45, 'Oslo'), ('Eli', 19, 'Lyon');
INSERT INTO orders (user_id, total, placed) VALUES
  (1, 12.5, '2026-01-03'), (1, 80, '2026-02-11'), (3, 7, '2026-02-12'), (4, 150, '2026-03-01'), (5, 31, '2026-03-09');
