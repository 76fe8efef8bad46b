import Directory
import RecordModel
import Service

/// A session whose tokens one client presents at one node, and which of them must be good there.
struct TokenBook {
    /// A token, and when it was first presented: between two moments.
    struct Use {
        var token: String?
        var begun: UInt64
        var ended: UInt64
    }

    let session: String
    let node: SimulatedNode
    /// That of the node, which remembers the tokens.
    let process: ProcessLife
    /// In the order in which they were presented, each newer than the one before.
    var uses: [Use] = []
    /// The newest one, not in use yet.
    var next: String?
    /// When it came to a node first: one that refused a request, as it had too much to do, may have noted its token.
    var begun: UInt64?
}

// What a client does with the older tokens of a session while newer ones replace them.
extension Client {
    private static let graceLeast = 55 * World.second
    private static let graceMost = 62 * World.second
    /// After this the session may end, as somebody has a copy of the token.
    private static let reuseLeast = 113 * World.second
    private static let reuseMost = 125 * World.second

    private static let look: @Sendable (Visit) async throws(RequestFailure) -> Bool = { visit throws(RequestFailure) in
        try await visit.enter { _ throws(RequestFailure) in true }
    }

    func useTokenBook() async {
        guard let book = usableTokenBook else { return await beginTokenBook() }
        // The first token has no text that the client knows, and the last one is good.
        guard book.uses.count > 2, world.chance(45) else { return await presentNewest(book) }
        // By chance alone it would rarely come after the grace time and before a copy of it is suspected.
        if world.chance(25) {
            for _ in 0..<world.random(63...105) where !isEnding { await sleep(World.second) }
        }
        if let book = usableTokenBook { await presentOlder(book) }
    }

    /// That of the process which remembers the tokens, while it is there.
    private var usableTokenBook: TokenBook? {
        guard let book = tokenBook, book.node.process === book.process, book.node.running != nil else { return nil }
        return book
    }

    private func beginTokenBook() async {
        tokenBook = nil
        let id = "book-\(newValue())"
        let node = world.pick(nodes.filter { $0.isEnlisted && !$0.isRetired })
        guard await settle([.createToken(Place.session(id, Place.accounts[0]))]),
            let process = node.running?.process
        else { return }
        tokenBook = TokenBook(session: id, node: node, process: process)
        for _ in 0..<3 {
            guard let book = tokenBook else { return }
            await presentNewest(book)
            await sleep(World.second)
        }
    }

    private func presentNewest(_ book: TokenBook) async {
        let session = UserSession(book.session)
        session.take(book.next)
        let begun = book.begun ?? world.now
        tokenBook?.begun = begun
        switch await ServerCall.make(to: book.node, as: session, recorder, Self.look) {
        case .value:
            guard tokenBook?.session == book.session, session.token != book.next else { return }
            tokenBook?.uses.append(.init(token: book.next, begun: begun, ended: world.now))
            tokenBook?.next = session.token
            tokenBook?.begun = nil
            // The first one has no text that the client knows.
            if book.uses.count == 2, let token = book.uses[1].token {
                recorder.keptTokens.append(
                    KeptToken(
                        session: book.session, token: token, node: book.node, process: book.process,
                        replaced: world.now))
            }
        case .failed(let failure):
            recorder.violated(
                "client \(number): the newest token of session \(book.session) is refused: \(failure.error)")
            tokenBook = nil
        // It may have been presented, and what came of it is not known.
        case .unknown: tokenBook = nil
        case .refused: break
        }
    }

    /// Presents one that was replaced: good for the grace time since the next newer one came, and no longer.
    private func presentOlder(_ book: TokenBook) async {
        let place = world.random(1...(book.uses.count - 2))
        guard let token = book.uses[place].token else { return }
        let replaced = book.uses[place + 1]
        let session = UserSession(book.session)
        session.take(token)
        let begun = world.now
        let answer = await ServerCall.make(to: book.node, as: session, recorder, Self.look)
        let (least, most) = (begun - min(begun, replaced.ended), world.now - replaced.begun)
        let name = "client \(number): the token \(place) of \(book.uses.count) of session \(book.session)"
        switch answer {
        case .value where least > Self.graceMost:
            recorder.violated(
                "\(name) is taken \(least / World.millisecond) ms after a newer one was presented at the same node")
        case .failed(let failure) where most < Self.graceLeast:
            recorder.violated(
                "\(name) is refused \(most / World.millisecond) ms after a newer one was presented: \(failure.error)")
        case .failed where least > Self.graceMost: world.met(.supersededToken)
        default: break
        }
        guard most > Self.reuseLeast else { return }
        // With a copy of such a token the whole session ends.
        tokenBook = nil
        if case .failed = answer, least > Self.reuseMost {
            recorder.reusedSessions.append(ReusedSession(book: book, time: world.now))
        }
    }

    /// Sessions of which somebody had a copy of a token are over by now.
    func tryReusedSessions() async {
        for reused in recorder.reusedSessions {
            let book = reused.book
            guard book.node.process === book.process, reused.time + 20 * World.second < world.now else { continue }
            let session = UserSession(book.session)
            session.take(book.next)
            guard case .answered = await ask(repeats: true, triesMax: 3, as: session, Self.look) else { continue }
            recorder.violated("session \(book.session) goes on, though a copy of an old token of it was presented")
        }
    }
}

/// A session of which a token came that had been replaced long before.
struct ReusedSession {
    let book: TokenBook
    let time: UInt64
}
