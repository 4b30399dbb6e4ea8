#version 300 es
// The example pictures: small still lifes, ray-marched. SCENE is defined by draw.py.
precision highp float;
uniform vec2 size;
uniform vec2 corner;
uniform sampler2D face;
out vec4 result;

struct Hit { float d; int m; };

float hash(vec2 p) { return fract(sin(dot(p, vec2(127.1, 311.7))) * 43758.5453); }
float hash3(vec3 p) { return fract(sin(dot(p, vec3(127.1, 311.7, 74.7))) * 43758.5453); }
float noise(vec3 p) {
  vec3 i = floor(p), f = fract(p);
  f = f * f * (3.0 - 2.0 * f);
  return mix(mix(mix(hash3(i), hash3(i + vec3(1, 0, 0)), f.x), mix(hash3(i + vec3(0, 1, 0)), hash3(i + vec3(1, 1, 0)), f.x), f.y),
             mix(mix(hash3(i + vec3(0, 0, 1)), hash3(i + vec3(1, 0, 1)), f.x), mix(hash3(i + vec3(0, 1, 1)), hash3(i + vec3(1, 1, 1)), f.x), f.y), f.z);
}
float fbm(vec3 p) {
  float sum = 0.0, part = 0.5;
  for (int i = 0; i < 5; i++) { sum += part * noise(p); p = 2.03 * p + 1.7; part *= 0.5; }
  return sum;
}
Hit nearer(Hit a, Hit b) { if (a.d < b.d) return a; return b; }
float ellipsoid(vec3 p, vec3 r) { float k0 = length(p / r), k1 = length(p / (r * r)); return k0 * (k0 - 1.0) / k1; }
float torus(vec3 p, float R, float r) { return length(vec2(length(p.xz) - R, p.y)) - r; }
float cyl(vec3 p, float r, float h) { vec2 d = abs(vec2(length(p.xz), p.y)) - vec2(r, h); return min(max(d.x, d.y), 0.0) + length(max(d, 0.0)); }
float capsule(vec3 p, vec3 a, vec3 b, float r) { vec3 pa = p - a, ba = b - a; float t = clamp(dot(pa, ba) / dot(ba, ba), 0.0, 1.0); return length(pa - ba * t) - r; }
mat2 turn(float a) { return mat2(cos(a), -sin(a), sin(a), cos(a)); }

const int TABLE = 1, CHINA = 2, DOUGH = 3, ORANGE = 4, BANANA = 5, WALL = 10,
  SIGN = 11, POLE = 12, LEAVES = 13, GRASS = 14, BRICK = 15, CLOCK = 16, METAL = 17, COFFEE = 18, PETAL = 19, STEM = 20,
  GLASSY = 21, ROAD = 22;

vec3 donutPlace(int i) { return i == 0 ? vec3(-0.62, 0.3, 0.25) : i == 1 ? vec3(0.62, 0.3, 0.3) : vec3(0.02, 0.34, -0.72); }

float banana(vec3 p) {
  p.xy = turn(0.25) * p.xy;
  float a = clamp(atan(p.x, -p.y), -0.95, 0.95);
  vec3 c = vec3(sin(a), -cos(a), 0.0) * 1.0;
  float t = abs(a) / 0.95;
  float r = 0.165 * (1.0 - 0.75 * pow(t, 5.0));
  return (length(p - c) - r) * 0.8;
}

Hit scene(vec3 p) {
  Hit h = Hit(1e3, 0);
#if SCENE == 1
  h = nearer(h, Hit(p.y, TABLE));
  float plate = max(ellipsoid(p - vec3(0, 0.12, -0.1), vec3(1.75, 0.14, 1.75)), -ellipsoid(p - vec3(0, 0.24, -0.1), vec3(1.55, 0.17, 1.55)));
  h = nearer(h, Hit(plate * 0.8, CHINA));
  for (int i = 0; i < 3; i++) h = nearer(h, Hit(torus(p - donutPlace(i), 0.4, 0.215), DOUGH));
#elif SCENE == 2
  h = nearer(h, Hit(p.y, TABLE));
  vec3 b = p - vec3(0, 0.95, 0);
  float bowl = max(abs(length(b) - 1.15) - 0.035, b.y + 0.1);
  bowl = min(bowl, cyl(p - vec3(0, 0.04, 0), 0.5, 0.05));
  h = nearer(h, Hit(max(bowl, -p.y - 0.2), CHINA));
  vec3 o[5] = vec3[5](vec3(-0.55, 0.95, 0.35), vec3(0.1, 0.85, 0.6), vec3(0.6, 0.95, 0.15), vec3(-0.15, 0.9, -0.3), vec3(-0.1, 1.32, 0.25));
  for (int i = 0; i < 5; i++) { vec3 q = p - o[i]; h = nearer(h, Hit(length(q) - 0.36 + 0.006 * noise(q * 45.0), ORANGE)); }
  vec3 q = p - vec3(0.35, 2.05, -0.15); q.xz = turn(0.5) * q.xz;
  h = nearer(h, Hit(banana(q), BANANA));
  q = p - vec3(0.45, 2.0, -0.45); q.xz = turn(0.75) * q.xz;
  h = nearer(h, Hit(banana(q), BANANA));
#elif SCENE == 4
  h = nearer(h, Hit(p.y + 0.06 * fbm(p * 2.0) * step(-2.2, -p.z), p.z > 2.2 ? ROAD : GRASS));
  vec3 q = p - vec3(0.25, 2.75, 0); q.xz = turn(0.18) * q.xz;
  vec2 a = abs(q.xy);
  float oct = max(max(a.x, a.y), (a.x + a.y) * 0.7071) - 0.95;
  h = nearer(h, Hit(max(oct, abs(q.z) - 0.03), SIGN));
  h = nearer(h, Hit(capsule(p, vec3(0.25, 0, -0.1), vec3(0.25, 3.6, -0.1), 0.065), POLE));
  for (int i = 0; i < 5; i++) {
    float f = float(i);
    vec3 c = vec3(-7.0 + 3.4 * f, 1.9 + 0.5 * sin(3.0 * f), -7.0 - 1.5 * mod(f, 2.0));
    float tree = length((p - c) / vec3(1.0, 1.15, 1.0)) - 1.9 + 1.1 * (fbm(p * 1.6 + f) - 0.4) + 0.25 * noise(p * 6.0);
    h = nearer(h, Hit(tree * 0.5, LEAVES));
    h = nearer(h, Hit(capsule(p, vec3(c.x, 0, c.z), c, 0.22), STEM));
  }
#elif SCENE == 5
  vec2 u = p.xy / vec2(0.62, 0.26); u.x += 0.5 * floor(mod(floor(u.y), 2.0));
  vec2 e = (0.5 - abs(fract(u) - 0.5)) * vec2(0.62, 0.26);
  float mortar = smoothstep(0.022, 0.006, min(e.x, e.y));
  h = nearer(h, Hit((p.z + 0.03 * mortar - 0.02 * fbm(p * 9.0)) * 0.8, BRICK));
  vec3 q = p - vec3(0, 0, 0.12);
  h = nearer(h, Hit(cyl(q.xzy, 1.25, 0.06), CLOCK));
  h = nearer(h, Hit(torus((q - vec3(0, 0, 0.05)).xzy, 1.3, 0.09), METAL));
#elif SCENE == 6
  h = nearer(h, Hit(p.y, TABLE));
  float saucer = max(ellipsoid(p - vec3(0, 0.1, 0), vec3(1.35, 0.1, 1.35)), -ellipsoid(p - vec3(0, 0.2, 0), vec3(1.2, 0.13, 1.2)));
  vec3 q = p - vec3(0, 0.72, 0);
  float R = 0.72 + 0.13 * q.y;
  float cup = max(abs(length(q.xz) - R) - 0.035, abs(q.y) - 0.58);
  cup = min(cup, cyl(p - vec3(0, 0.16, 0), 0.62, 0.03));
  vec3 k = p - vec3(0.92, 0.75, 0);
  cup = min(cup, max(torus(k.xzy, 0.27, 0.06), -(length(q.xz) - R)));
  h = nearer(h, Hit(min(saucer, cup) * 0.8, CHINA));
  h = nearer(h, Hit(cyl(p - vec3(0, 1.1, 0), 0.74, 0.01), COFFEE));
  vec3 sp = p - vec3(-0.95, 0.16, 0.75); sp.xz = turn(-0.5) * sp.xz;
  float spoon = min(ellipsoid(sp, vec3(0.2, 0.03, 0.13)), capsule(sp, vec3(0.15, 0.0, 0), vec3(1.2, 0.07, 0), 0.03));
  h = nearer(h, Hit(spoon, METAL));
#elif SCENE == 7
  h = nearer(h, Hit(p.y, TABLE));
  h = nearer(h, Hit(p.z + 2.6, WALL));
  float r = 0.42 + 0.2 * sin(2.6 * p.y + 0.35);
  float vase = max(abs(length(p.xz) - r) - 0.03, abs(p.y - 0.75) - 0.75);
  h = nearer(h, Hit(vase * 0.55, GLASSY));
  for (int i = 0; i < 7; i++) {
    float f = float(i), a = 0.9 * f;
    vec3 c = vec3(0.75 * sin(a) * (0.45 + 0.09 * f), 2.5 + 0.42 * cos(1.7 * f), 0.55 * cos(a) * (0.5 + 0.05 * f));
    h = nearer(h, Hit(capsule(p, vec3(0.1 * sin(a), 0.4, 0.1 * cos(a)), c, 0.03), STEM));
    vec3 q = (p - c);
    float petals = 0.07 * sin(6.0 * atan(q.x, q.z) + 9.0 * q.y) + 0.05 * noise(q * 9.0);
    h = nearer(h, Hit((ellipsoid(q, vec3(0.36, 0.32, 0.36)) + petals) * 0.6, PETAL));
    vec3 lf = p - mix(vec3(0.0, 1.2, 0.0), c, 0.55) - vec3(0.22 * sin(a + 1.5), 0.0, 0.22 * cos(a + 1.5));
    lf.xz = turn(a) * lf.xz; lf.xy = turn(0.5) * lf.xy;
    h = nearer(h, Hit(ellipsoid(lf, vec3(0.3, 0.03, 0.1)) * 0.8, LEAVES));
  }
#endif
  return h;
}

vec3 normalAt(vec3 p) {
  vec2 e = vec2(0.0015, -0.0015);
  return normalize(e.xyy * scene(p + e.xyy).d + e.yyx * scene(p + e.yyx).d + e.yxy * scene(p + e.yxy).d + e.xxx * scene(p + e.xxx).d);
}
float shade(vec3 p, vec3 l, float soft) {
  float lit = 1.0, t = 0.03;
  for (int i = 0; i < 48; i++) {
    float d = scene(p + l * t).d;
    lit = min(lit, soft * d / t);
    t += clamp(d, 0.02, 0.25);
    if (lit < 0.003 || t > 8.0) break;
  }
  return clamp(lit, 0.0, 1.0);
}
float hollow(vec3 p, vec3 n) {
  float sum = 0.0, part = 1.0;
  for (int i = 0; i < 5; i++) { float t = 0.02 + 0.1 * float(i); sum += part * (t - scene(p + n * t).d); part *= 0.75; }
  return clamp(1.0 - 1.4 * sum, 0.0, 1.0);
}

vec3 wood(vec3 p, vec3 light, vec3 dark) {
  float plank = floor(p.z * 0.9);
  float grain = fbm(vec3(p.x * 0.7 + 9.0 * hash(vec2(plank, 1.0)), p.z * 9.0, plank));
  float fine = noise(vec3(p.x * 3.0, p.z * 90.0, 1.0));
  float seam = smoothstep(0.02, 0.0, abs(fract(p.z * 0.9) - 0.01));
  return mix(light, dark, 0.75 * grain + 0.2 * fine + 0.1 * hash(vec2(plank, 3.0))) * (1.0 - 0.6 * seam);
}

// Colour, and how shiny.
vec4 look(int m, vec3 p, vec3 n) {
  if (m == TABLE) {
#if SCENE == 6
    return vec4(wood(p, vec3(0.36, 0.2, 0.11), vec3(0.13, 0.06, 0.03)), 0.25);
#else
    return vec4(wood(p, vec3(0.66, 0.42, 0.22), vec3(0.33, 0.18, 0.08)), 0.15);
#endif
  }
  if (m == CHINA) {
#if SCENE == 2
    return vec4(vec3(0.35, 0.5, 0.66), 0.6);
#else
    return vec4(vec3(0.86, 0.85, 0.82), 0.6);
#endif
  }
  if (m == DOUGH) {
    int near = 0; float best = 9.0;
    for (int i = 0; i < 3; i++) { float d = abs(torus(p - donutPlace(i), 0.4, 0.215)); if (d < best) { best = d; near = i; } }
    vec3 q = p - donutPlace(near);
    float edge = 0.02 + 0.06 * sin(7.0 * atan(q.x, q.z)) + 0.05 * sin(3.0 * atan(q.x, q.z) + 1.0);
    if (q.y > edge) {
      vec3 icing = near == 0 ? vec3(0.9, 0.4, 0.55) : near == 1 ? vec3(0.2, 0.09, 0.045) : vec3(0.93, 0.88, 0.8);
      vec2 uv = vec2(atan(q.x, q.z) * 5.0, (length(q.xz) - 0.4) * 17.0);
      vec2 cell = floor(uv), f = fract(uv) - 0.5;
      f = turn(6.28 * hash(cell)) * f;
      float sprinkle = step(max(abs(f.x) * 0.45, abs(f.y) * 1.5), 0.14) * step(0.45, hash(cell + 7.0));
      vec3 tint = 0.55 + 0.45 * cos(6.28 * (hash(cell + 3.0) + vec3(0.0, 0.33, 0.67)));
      return vec4(mix(icing, tint, near == 2 ? sprinkle : near == 0 ? sprinkle : 0.0), 0.5);
    }
    return vec4(mix(vec3(0.72, 0.44, 0.18), vec3(0.5, 0.26, 0.09), fbm(p * 8.0)), 0.05);
  }
  if (m == ORANGE) return vec4(vec3(0.93, 0.42, 0.03) * (0.85 + 0.2 * fbm(p * 20.0)), 0.35);
  if (m == BANANA) return vec4(mix(vec3(0.95, 0.77, 0.13), vec3(0.35, 0.25, 0.06), smoothstep(0.62, 0.75, fbm(p * 5.0)) * 0.7), 0.15);
  if (m == WALL) return vec4(vec3(0.6, 0.57, 0.5), 0.0);
  if (m == SIGN) {
    vec3 q = p - vec3(0.25, 2.75, 0); q.xz = turn(0.18) * q.xz;
    return n.z > 0.3 ? vec4(pow(texture(face, vec2(q.x, -q.y) / 1.9 + 0.5).rgb, vec3(2.2)), 0.2) : vec4(vec3(0.5), 0.3);
  }
  if (m == POLE) return vec4(vec3(0.42), 0.4);
  if (m == LEAVES) return vec4(mix(vec3(0.05, 0.17, 0.02), vec3(0.2, 0.36, 0.06), fbm(p * 5.0)), 0.0);
  if (m == GRASS) return vec4(mix(vec3(0.09, 0.2, 0.03), vec3(0.26, 0.36, 0.09), fbm(vec3(p.xz * 6.0, 1.0))), 0.0);
  if (m == ROAD) return vec4(vec3(0.2) * (0.8 + 0.4 * noise(p * 50.0)), 0.0);
  if (m == BRICK) {
    vec2 u = p.xy / vec2(0.62, 0.26); u.x += 0.5 * floor(mod(floor(u.y), 2.0));
    vec2 e = (0.5 - abs(fract(u) - 0.5)) * vec2(0.62, 0.26);
    float mortar = smoothstep(0.02, 0.01, min(e.x, e.y));
    vec3 brick = mix(vec3(0.42, 0.14, 0.08), vec3(0.3, 0.09, 0.05), hash(floor(u))) * (0.7 + 0.5 * fbm(p * 14.0));
    return vec4(mix(brick, vec3(0.5, 0.46, 0.41), mortar), 0.0);
  }
  if (m == CLOCK) return n.z > 0.5 ? vec4(pow(texture(face, vec2(p.x, -p.y) / 2.5 + 0.5).rgb, vec3(2.2)), 0.3) : vec4(vec3(0.1), 0.3);
  if (m == METAL) return vec4(
#if SCENE == 5
    vec3(0.03),
#else
    vec3(0.55),
#endif
    0.8);
  if (m == COFFEE) {
    float swirl = fbm(vec3(p.xz * 3.0 + 0.5 * sin(4.0 * p.zx), 1.0));
    return vec4(mix(vec3(0.09, 0.035, 0.012), vec3(0.62, 0.4, 0.22), smoothstep(0.4, 0.75, swirl + 0.35 * smoothstep(0.5, 0.74, length(p.xz)))), 0.4);
  }
  if (m == PETAL) return vec4(mix(vec3(0.75, 0.03, 0.06), vec3(0.9, 0.16, 0.22), fbm(p * 7.0)), 0.05);
  if (m == STEM) return vec4(
#if SCENE == 4
    vec3(0.16, 0.1, 0.06),
#else
    vec3(0.1, 0.26, 0.06),
#endif
    0.0);
  return vec4(vec3(0.75, 0.8, 0.84), 0.7);
}

vec3 sky(vec3 d) {
#if SCENE == 4
  float clouds = smoothstep(0.45, 0.8, fbm(vec3(d.xy * 3.0 / (0.3 + d.y), 2.0)));
  return mix(mix(vec3(0.62, 0.76, 0.92), vec3(0.18, 0.4, 0.78), clamp(d.y * 1.6, 0.0, 1.0)), vec3(0.95), 0.75 * clouds * step(0.0, d.y));
#else
  return mix(vec3(0.34, 0.3, 0.26), vec3(0.85, 0.86, 0.9), smoothstep(-0.2, 0.9, d.y));
#endif
}

vec3 march(vec3 eye, vec3 d) {
  float t = 0.05;
  Hit h = Hit(0.0, 0);
  for (int i = 0; i < 150; i++) {
    h = scene(eye + d * t);
    if (h.d < 0.0008 * t || t > 40.0) break;
    t += h.d * 0.9;
  }
  if (t > 40.0) return sky(d);
  vec3 p = eye + d * t, n = normalAt(p);
#if SCENE == 4
  vec3 l = normalize(vec3(0.5, 0.7, 0.65)); vec3 sun = vec3(2.3, 2.15, 1.9);
#elif SCENE == 5
  vec3 l = normalize(vec3(-0.5, 0.7, 0.75)); vec3 sun = vec3(2.2, 2.05, 1.8);
#else
  vec3 l = normalize(vec3(-0.55, 0.75, 0.42)); vec3 sun = vec3(2.1, 1.95, 1.75);
#endif
  vec4 c = look(h.m, p, n);
  float lit = max(dot(n, l), 0.0) * shade(p + n * 0.01, l, 9.0);
  float open = hollow(p, n);
  vec3 around = mix(vec3(0.3, 0.25, 0.2), vec3(0.55, 0.6, 0.7), 0.5 + 0.5 * n.y) * open;
  vec3 colour = c.rgb * (sun * lit + around);
  vec3 r = reflect(d, n);
  float rim = pow(1.0 - max(dot(n, -d), 0.0), 5.0);
  colour += c.a * (0.05 + 0.5 * rim) * sky(r) * open;
  colour += c.a * pow(max(dot(r, l), 0.0), 60.0) * lit * sun * 0.6;
#if SCENE == 4
  colour = mix(colour, sky(d), 1.0 - exp(-0.012 * t));
#endif
  return colour;
}

void main() {
  vec3 sum = vec3(0.0);
  for (int s = 0; s < SAMPLES; s++) {
    vec2 jitter = vec2(float(s % 2), float(s / 2)) / 2.0 + 0.25;
    vec2 uv = (2.0 * (gl_FragCoord.xy - 0.5 + jitter) - size) / size.y;
#if SCENE == 1
    vec3 eye = vec3(0.3, 3.0, 4.3), at = vec3(0, 0.2, -0.15); float zoom = 3.5;
#elif SCENE == 2
    vec3 eye = vec3(-0.6, 3.2, 5.2), at = vec3(0.1, 0.85, 0); float zoom = 3.6;
#elif SCENE == 4
    vec3 eye = vec3(0.0, 1.7, 6.2), at = vec3(0.1, 2.35, 0); float zoom = 2.0;
#elif SCENE == 5
    vec3 eye = vec3(-0.5, -1.0, 5.4), at = vec3(0, 0.05, 0); float zoom = 2.5;
#elif SCENE == 6
    vec3 eye = vec3(-0.5, 3.0, 4.6), at = vec3(0.05, 0.55, 0); float zoom = 2.3;
#else
    vec3 eye = vec3(0.4, 2.3, 6.2), at = vec3(0, 1.5, 0); float zoom = 2.9;
#endif
    vec3 w = normalize(at - eye), u = normalize(cross(w, vec3(0, 1, 0))), v = cross(u, w);
    sum += march(eye, normalize(uv.x * u + uv.y * v + zoom * w));
  }
  vec3 colour = 0.5 * sum / float(SAMPLES);
  colour = colour * (2.51 * colour + 0.03) / (colour * (2.43 * colour + 0.59) + 0.14); // film
  colour = pow(clamp(colour, 0.0, 1.0), vec3(1.0 / 2.2));
  vec2 e = gl_FragCoord.xy / size - 0.5;
  colour *= 1.0 - 0.35 * dot(e, e);
  colour += 0.018 * (hash(gl_FragCoord.xy + 0.37) - 0.5);
  result = vec4(colour, 1.0);
}
