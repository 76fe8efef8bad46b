import Foundation
import RecordModel
import Testing

@testable import RecordStore

@Suite("Words of texts")
struct TokenizerTests {
    func tokens(_ text: String) -> [String] {
        Tokenizer.tokens(of: .string(text)).map { String(decoding: $0, as: UTF8.self) }.sorted()
    }

    @Test("case, diacritics and their ways of writing make no difference, in several scripts")
    func folding() {
        #expect(tokens("The QUICK, brown-fox; 42!") == ["42", "brown", "fox", "quick", "the"])
        #expect(tokens("\u{C9}mile E\u{301}MILE emile") == ["emile"])
        #expect(tokens("Stra\u{DF}e STRASSE \u{FB01}n") == ["fin", "strasse"])
        #expect(tokens("\u{3A3}\u{39F}\u{3A6}\u{39F}\u{3A3} \u{3C3}\u{3BF}\u{3C6}\u{3BF}\u{3C2}").count == 1)
        #expect(tokens("\u{130}stanbul istanbul") == ["istanbul"])
        #expect(tokens("\u{41F}\u{440}\u{438}\u{432}\u{435}\u{442}") == ["\u{43F}\u{440}\u{438}\u{432}\u{435}\u{442}"])
        #expect(tokens("\u{645}\u{64E}\u{631}\u{652}\u{62D}\u{628}\u{627}") == ["\u{645}\u{631}\u{62D}\u{628}\u{627}"])
        // Vowel signs are part of the word.
        #expect(tokens("\u{915}\u{93F}") != tokens("\u{915}\u{940}"))
    }

    @Test("characters of scripts without spaces are words of their own")
    func alone() {
        #expect(tokens("\u{65E5}\u{672C}\u{8A9E}abc") == ["abc", "\u{65E5}", "\u{672C}", "\u{8A9E}"].sorted())
        #expect(tokens("\u{304C}\u{30AB}") == ["\u{304B}", "\u{30AB}"].sorted())
    }

    @Test("nothing but signs and marks is no word")
    func empty() { #expect(tokens("!? \u{301} \u{1F600}\u{FE0F} --- \u{200D}").isEmpty) }

    @Test("long words are cut at a character, and words beyond the greatest number are left out")
    func limits() {
        #expect(tokens(String(repeating: "a", count: 65)) == [String(repeating: "a", count: 64)])
        let cut = tokens(String(repeating: "\u{44F}", count: 40)).first ?? ""
        #expect(cut.utf8.count == 64 && cut.count == 32)
        let many = (0..<10_001).map { "w\($0)" }.joined(separator: " ")
        #expect(Tokenizer.tokens(of: .string(many)).count == 10_000)
        let list = FieldValue.list(.string, [.string("one two"), .string("two three")])
        #expect(Tokenizer.tokens(of: list).count == 3)
    }

    @Test("a star right behind a word makes it a prefix")
    func prefixes() {
        let words = Tokenizer.words(of: "Foo* bar *baz foo qu\u{E9}* ")
        #expect(words.map { String(decoding: $0.token, as: UTF8.self) } == ["foo", "bar", "baz", "foo", "que"])
        #expect(words.map(\.isPrefix) == [true, false, false, false, true])
    }
}

@Suite("Places")
struct PlaceTests {
    func place(_ latitude: Double, _ longitude: Double) -> Location {
        Location(latitude: latitude, longitude: longitude)
    }

    @Test("distances are those of the sphere, over the poles and the date line too")
    func distances() throws {
        func metres(_ left: Location, _ right: Location) throws -> Double {
            try #require(Place(left)).distance(to: #require(Place(right)))
        }
        let degree = Place.farthest / 180
        #expect(try abs(metres(place(0, 179.5), place(0, -179.5)) - degree) < 0.001)
        #expect(try abs(metres(place(89.5, 0), place(89.5, 180)) - degree) < 0.001)
        #expect(try metres(place(90, 10), place(90, -120)) < 0.001)
        #expect(try abs(metres(place(0, 0), place(0, 180)) - Place.farthest) < 0.001)
        #expect(try abs(metres(place(48.2082, 16.3738), place(52.52, 13.405)) - 523_600) < 1_000)
        #expect(Place(place(.nan, 0)) == nil && LocationCell(place(0, .infinity)) == nil)
    }

    @Test("a cell's middle is within a centimetre, and 180 degrees are -180")
    func cells() throws {
        var random = Random(5)
        for _ in 0..<500 {
            let location = place(.random(in: -90...90, using: &random), .random(in: -180...180, using: &random))
            let cell = try #require(LocationCell(location))
            #expect(try cell.center.distance(to: #require(Place(location))) < 0.01)
            #expect(cell.value >= 0)
        }
        #expect(LocationCell(place(12, 180)) == LocationCell(place(12, -180)))
        for latitude in [-90.0, 90] { #expect(LocationCell(place(latitude, 0)) != nil) }
    }

    @Test("a covering holds every place of its ring, in few ascending ranges, and little else")
    func coverings() throws {
        var random = Random(9)
        for number in 0..<150 {
            let latitude = [90, -90, 89.99, 0, Double.random(in: -90...90, using: &random)][number % 5]
            let longitude = [180, -180, 179.99, Double.random(in: -180...180, using: &random)][number % 4]
            let center = try #require(Place(place(latitude, longitude)))
            let scale: Double = [10, 1_000, 100_000, 3_000_000, 20_000_000].randomElement(using: &random) ?? 1
            let outer = scale * Double.random(in: 0.1...1, using: &random)
            let inner = number % 3 == 0 ? outer * 0.8 : 0
            let ranges = CellCovering.ranges(around: center, inner: inner, outer: outer)
            #expect(ranges.count <= 40)
            #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound + 1 < $1.lowerBound })
            for _ in 0..<40 {
                // About the centre, and anywhere.
                let spread = outer / 50_000
                let near = place(
                    latitude + .random(in: -spread...spread, using: &random),
                    longitude + .random(in: -spread...spread, using: &random) / max(0.01, 1 - abs(latitude) / 90))
                for location in [
                    near, place(.random(in: -90...90, using: &random), .random(in: -180...180, using: &random)),
                ] {
                    guard let there = Place(location), let cell = LocationCell(location) else { continue }
                    let metres = center.distance(to: there)
                    let isHeld = ranges.contains { $0.contains(cell.value) }
                    if metres >= inner && metres <= outer { #expect(isHeld, "\(location) \(outer)") }
                    // About a pole 40 squares of the grid hold a wide cap.
                    let isFar = abs(latitude) < 60 && inner == 0 && metres > outer * 6 + 1
                    if isFar { #expect(!isHeld, "\(location) at \(metres) of \(outer)") }
                }
            }
        }
    }

    @Test("sines and arc tangents are right, and the same bits wherever they are computed")
    func trigonometry() {
        // The FNV-1a hash of all results, as another program in another language has found it.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for number in 0..<20_000 {
            let angle = Double(number) * 0.000625 - 6.25
            let (sine, cosine) = Trigonometry.own.sineAndCosine(angle)
            let again = Trigonometry.own.angle(sine, cosine)
            #expect(abs(sine - sin(angle)) < 3e-16 && abs(cosine - cos(angle)) < 3e-16)
            #expect(abs(again - atan2(sine, cosine)) < 1e-15)
            for value in [sine, cosine, again] {
                for shift in 0..<8 as Range<UInt64> {
                    hash = (hash ^ value.bitPattern >> (shift * 8) & 0xFF) &* 0x100_0000_01B3
                }
            }
        }
        #expect(String(hash, radix: 16) == "b0d17b05b72da2fb")
        #expect(Trigonometry.own.angle(0, 0) == 0 && Trigonometry.own.angle(0, -1) == .pi)
    }
}
