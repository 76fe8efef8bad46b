/// The members of Apple's framework that code on Linux may count on, as Apple's documentation declares them.
///
/// A line that begins with `=` names the type that the next lines are members of, with its kind; `= *` is the module.
/// Other lines are a mark and a declaration. The marks: `M`, nearly every program needs it; `S`, shipped programs
/// commonly do; `L`, few do, and they may be absent. Default values are written `= _`: what they are is held by
/// ``SurfaceUses``. Left out are attributes, and the names of parameters inside a function.
enum SurfaceList {
    struct Member: Hashable {
        /// `M`, `S` or `L`.
        var mark: Character
        /// The type, or nothing for the module.
        var owner: String
        /// As it is written in the list.
        var declaration: String
    }

    static let members: [Member] = [
        container, database, record, query, operations, changes, subscriptions, sharing, syncEngine, errors,
        predicates, preferences, absent,
    ]
    .flatMap(parse)

    /// Members of a part of the list.
    static func parse(_ text: String) -> [Member] {
        var owner = ""
        var members: [Member] = []
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 1)
            precondition(words.count == 2, "no list has a line such as: \(line)")
            if words[0] == "=" {
                let parts = words[1].split(separator: " ")
                owner = parts[0] == "*" ? "" : String(parts[0])
                if parts.count == 3 {
                    members.append(
                        Member(mark: Character(String(parts[1])), owner: owner, declaration: String(parts[2])))
                }
            } else {
                members.append(Member(mark: Character(String(words[0])), owner: owner, declaration: String(words[1])))
            }
        }
        return members
    }
}
