CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users(id), "total price" REAL, placed TEXT);
INSERT INTO users (name, age, city) VALUES ('Ann Lee', 34, 'Oslo'), ('Bo Ek', 51, 'Lund'), ('Zoe O''Hara', 28, 'Oslo');
INSERT INTO orders (user_id, "total price", placed) VALUES (1, 12.5, '2024-03-01'), (3, 99.0, '2024-04-12');
