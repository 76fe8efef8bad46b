import RecordModel
import Testing

@Suite("Names by their bytes")
struct BytewiseTests {
    private static let kelvin = "\u{212A}ite"

    @Test(
        "texts that Swift takes for equal are two keys",
        arguments: [
            ("Kite", kelvin), ("\u{E9}", "e\u{301}"), ("a\u{301}\u{323}", "a\u{323}\u{301}"),
            ("\u{3A9}", "\u{2126}"),
        ])
    func different(one: String, other: String) {
        #expect(one == other && Bytewise(one) != Bytewise(other))
        #expect(Set([Bytewise(one), Bytewise(other), Bytewise(one)]).count == 2)
        #expect(Bytewise(one) == Bytewise(one[...]))
        #expect((Bytewise(one) < Bytewise(other)) != (Bytewise(other) < Bytewise(one)))
    }

    @Test("keys of databases and zones are those of their names' bytes")
    func keys() {
        func database(_ container: String, _ owner: String = "_public") -> DatabaseKey {
            DatabaseKey(container: container, environment: .production, scope: .public, owner: owner)
        }
        #expect(database("Kite") == database("Kite") && database("Kite") != database(Self.kelvin))
        #expect(database("a", "Kite") != database("a", Self.kelvin))
        #expect(ZoneKey(database: database("a"), name: "Kite") != ZoneKey(database: database("a"), name: Self.kelvin))
        // Parts that meet elsewhere are other keys, with other hashes.
        #expect(database("ab", "c").hashValue != database("a", "bc").hashValue)
    }

    @Test("a container's name is 1 to 255 letters, digits, dots, hyphens and underscores of ASCII")
    func containers() throws {
        for name in ["a", "iCloud.com.example.Kite-1_2", String(repeating: "n", count: 255)] {
            try ContainerName.check(name)
        }
        for name in ["", Self.kelvin, "a b", "a/b", "\u{E9}", "a\u{0}", "a;b", String(repeating: "n", count: 256)] {
            let error = #expect(throws: ServiceError.self) { try ContainerName.check(name) }
            #expect(error?.code == .badRequest && error?.reason.contains("iCloud.com.example.app") == true)
        }
    }
}
