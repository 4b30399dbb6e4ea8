/** A picture that the server is sent once, however many captions it gets. */

import { post, Problem, send } from "./api";
import type { Edit } from "./edit";

export class SentPicture {
  private id: Promise<string> | null = null;

  constructor(
    readonly file: Blob,
    readonly name: string,
  ) {}

  async edit(caption: string, knobs: Record<string, number>): Promise<Edit> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await post<Edit>("/edit", { image_id: await this.upload(), caption, knobs });
      } catch (error) {
        const forgotten = error instanceof Problem && error.status === 404;
        if (!forgotten || attempt > 0) throw error;
        this.id = null; // the server keeps only the latest pictures: send it again
      }
    }
  }

  private upload(): Promise<string> {
    this.id ??= send("/images", this.file, "application/octet-stream")
      .then((response) => response.json() as Promise<{ image_id: string }>)
      .then((told) => told.image_id)
      .catch((error: unknown) => {
        this.id = null; // another try may do better
        throw error;
      });
    return this.id;
  }
}
